"""Modules that are executed when something is first looked up in them.

    with when_used("onnxruntime"):
        import onnxruntime

What is slow to load and seldom needed costs a build nothing until then. The import stays one that
whoever reads the source sees: the code in a key (npumake.make.code) holds it as ever.

Samples are computed side by side, so two threads may look first: one executes the module, the other
waits. importlib.util.LazyLoader lets it see the half-made one before Python 3.12.
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
_LOCK = RLock()  # the thread that executes a module looks things up in it meanwhile


class _LateModule(ModuleType):
    """A module that waits; once executed it is an ordinary one."""

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
            module.__loader__ = spec.loader = self  # whoever asks again is told again
            raise
        module.__class__ = ModuleType


class _WhenUsedFinder(MetaPathFinder):
    """Finds some modules as ever, to be executed at their first use."""

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
    """Of the modules imported inside, those of these names wait for their first use."""
    finder = _WhenUsedFinder(names)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
