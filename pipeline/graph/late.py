"""onnx-ir without sympy, which takes longer to import than all else that a build needs.

onnx-ir computes with symbolic dimensions by it; a graph here has fixed shapes or names of open
ones, and never asks. Both modules are loaded the moment that anything looks into them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from types import ModuleType


class _WhenUsed(MetaPathFinder):
    """Finds some modules as ever, to be executed at their first use."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in self.names:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = LazyLoader(spec.loader)
        return spec


@contextmanager
def _when_used(*names: str) -> Iterator[None]:
    finder = _WhenUsed(names)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


with _when_used("sympy", "onnx_ir._symbolic_shapes"):
    import onnx_ir  # noqa: F401
