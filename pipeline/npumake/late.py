"""Lazy imports: modules that run when something is first looked up in them.

    with when_used("onnxruntime"):
        import onnxruntime

A slow and rarely used module costs a build nothing until then. The import stays visible in the
source: the code digest of a key (npumake.make.code) includes it as usual.

Samples are computed in parallel, so two threads may look up at once: one runs the module, the other
waits. Before Python 3.12 importlib.util.LazyLoader would show it the half-initialized module.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from threading import RLock
from types import ModuleType
from typing import Any

_IMPORT_ATTRIBUTES = (
    "__class__",
    "__loader__",
    "__name__",
    "__spec__",
)  # what another import of it asks
_LOCK = RLock()  # reentrant: a running module looks names up in itself


class _LateModule(ModuleType):
    """A module that waits; once it has run it is an ordinary one."""

    def __getattribute__(self, name: str) -> Any:
        look_up = ModuleType.__getattribute__
        if name not in _IMPORT_ATTRIBUTES:
            with _LOCK:
                loader = look_up(self, "__loader__")
                if isinstance(loader, _WaitingLoader):
                    loader.execute(self)
        return look_up(self, name)


class _WaitingLoader(Loader):
    """In front of a module's own loader, which it calls at the first use."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self
        module.__class__ = _LateModule

    def execute(self, module: ModuleType) -> None:
        module.__loader__ = self._loader
        spec = ModuleType.__getattribute__(module, "__spec__")
        spec.loader = self._loader
        try:
            self._loader.exec_module(module)
        except BaseException:
            module.__loader__ = spec.loader = self  # the next lookup raises again
            raise
        module.__class__ = ModuleType


class _WhenUsedFinder(MetaPathFinder):
    """Finds some modules as usual, to run at their first use."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in self._names:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _WaitingLoader(spec.loader)
        return spec


@contextmanager
def when_used(*names: str) -> Iterator[None]:
    """Imports inside the block wait for their first use, for modules of these names."""
    finder = _WhenUsedFinder(names)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
