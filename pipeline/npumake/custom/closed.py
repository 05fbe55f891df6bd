"""Closed imports: a project's Python only imports modules that the cache key covers.

    the standard library, except modules that import by a computed name
    NumPy, whose version is part of the key
    `npumake.custom`, and the vendors' names for it
    the files declared with it

The current directory, PYTHONPATH and sys.path have no effect, and sys.modules keeps no file of the
project. Each set of files has its own `__import__`.
"""

from __future__ import annotations

import builtins
import sys
import sysconfig
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from npumake.custom.blame import blamed
from npumake.custom.imports import Import, Library, imports, path_of
from npumake.custom.register import op_implement_register, op_shape_infer_register
from npumake.errors import ProjectError

OWN_PACKAGE = __name__.partition(".")[0]
# Packages that export the decorators: ours, and those of the vendors' tools.
DOORS = (OWN_PACKAGE, "horizon_nn", "hmct")
LIBRARIES = frozenset({"numpy"})
# Modules that import by a computed name, which the source does not show.
DYNAMIC = frozenset({"__import__", "importlib", "imp", "pkgutil", "runpy", "zipimport"})
OPEN = (sys.stdlib_module_names | LIBRARIES) - DYNAMIC
STANDARD_FOLDERS = tuple(
    Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib")
)
_LOADING = threading.RLock()  # sys.modules is global, and contains a file while it is executed

PLAIN = "write a plain `import`: the cache key does not cover imports by a computed name"

Declare = Callable[[str, Import], str]  # the hint for an import that is not declared


class Closed:
    """Declared files by name; each is executed once, at its first use."""

    def __init__(self, sources: Mapping[str, bytes]) -> None:
        self._sources = sources
        self._library = Library(sources)
        self._modules: dict[str, ModuleType] = {}

    def names(self, file: str) -> dict[str, Any]:
        """The names that a file defines. Raises StageError if it fails."""
        with blamed(f"`{file}` cannot be loaded", [*self._sources]):
            return dict(vars(self._module(path_of(file))))

    def _module(self, path: str) -> ModuleType:
        """The module of a path, executed, in its parent."""
        with _LOADING:
            if path in self._modules:
                return self._modules[path]
            folder, _, name = path.rpartition("/")
            parent = self._module(folder) if folder else None
            module = self._modules[path] = ModuleType(f"custom_operators.{path.replace('/', '.')}")
            if (file := self._library.file(path)) is not None:
                try:
                    self._execute(module, file)
                except BaseException:
                    del self._modules[path]  # a second use raises again
                    raise
            if parent is not None:
                setattr(parent, name, module)
            return module

    def _execute(self, module: ModuleType, file: str) -> None:
        module.__file__ = file
        vars(module)["__builtins__"] = {**vars(builtins), "__import__": self._importer(file)}
        code = compile(self._sources[file], file, "exec", dont_inherit=True)
        with _in_sys_modules(module):
            exec(code, vars(module))

    def _importer(self, file: str) -> Callable[..., ModuleType]:
        def importing(
            name: str,
            _globals: object = None,
            _locals: object = None,
            fromlist: Sequence[str] | None = (),
            level: int = 0,
        ) -> ModuleType:
            top = name.partition(".")[0]
            if level or top not in OPEN:
                if name in DOOR_MODULES and not level:
                    return DOOR_MODULES[name if fromlist else top]
                return self._declared(file, name, tuple(fromlist or ()), level)
            module = builtins.__import__(name, None, None, tuple(fromlist or ()), 0)
            _refuse_shadow(top)
            return module

        return importing

    def _declared(self, file: str, name: str, names: Sequence[str], level: int) -> ModuleType:
        path = self._library.path(file, name, level)
        if path is None:
            raise _refused(file, name)
        module = self._module(path)
        for below in (f"{path}/{inner}" for inner in names):
            if self._library.has(below):
                self._module(below)
        if names or level:
            return module
        top = path.split("/")[: path.count("/") - name.count(".") + 1]
        return self._module("/".join(top))


def refuse_undeclared(sources: Mapping[str, bytes], declare: Declare) -> None:
    """Raises ProjectError for the first import that the cache key does not cover."""
    library = Library(sources)
    for name in sorted(sources):
        for statement in imports(name, sources[name]):
            spelled = "." * statement.level + statement.module
            is_declared = library.reached(name, statement) is not None
            if is_declared and _is_open(statement):
                message = f"`{name}` imports `{spelled}`, a declared file and a module of Python's"
                raise ProjectError(message, statement.place, "rename the file")
            if not is_declared and not _is_open(statement) and statement.module not in DOOR_MODULES:
                message = f"`{name}` imports `{spelled}`, which is not declared"
                is_dynamic = statement.module.partition(".")[0] in DYNAMIC
                raise ProjectError(
                    message, statement.place, PLAIN if is_dynamic else declare(name, statement)
                )


def _is_open(statement: Import) -> bool:
    return not statement.level and statement.module.partition(".")[0] in OPEN


def _refused(file: str, name: str) -> ImportError:
    return ImportError(f"`{file}` imports `{name}`, which is not declared", name=name)


def _refuse_shadow(top: str) -> None:
    """Raises ImportError for a file on sys.path that hides a module of Python."""
    origin = getattr(getattr(sys.modules[top], "__spec__", None), "origin", None)
    if top in LIBRARIES or origin in (None, "built-in", "frozen"):
        return
    place = Path(origin).resolve()
    if not any(place.is_relative_to(folder) for folder in STANDARD_FOLDERS):
        raise ImportError(f"`{top}` is Python's own, and {origin} hides it: rename that file")


@contextmanager
def _in_sys_modules(module: ModuleType) -> Iterator[None]:
    """Registers the module meanwhile: class decorators such as dataclass look it up."""
    before = sys.modules.get(module.__name__)
    sys.modules[module.__name__] = module
    try:
        yield
    finally:
        del sys.modules[module.__name__]
        if before is not None:
            sys.modules[module.__name__] = before


def _doors() -> dict[str, ModuleType]:
    """`<door>`, `<door>.custom` and `<door>.custom.op_registration`, each in its parent."""
    modules: dict[str, ModuleType] = {}
    for door in DOORS:
        top, custom, last = (
            ModuleType(name) for name in (door, f"{door}.custom", f"{door}.custom.op_registration")
        )
        decorators = {
            "op_implement_register": op_implement_register,
            "op_shape_infer_register": op_shape_infer_register,
        }
        vars(last).update(decorators)
        vars(custom).update(decorators, op_registration=last)
        vars(top).update(custom=custom)
        modules |= {module.__name__: module for module in (top, custom, last)}
    return modules


DOOR_MODULES = _doors()
