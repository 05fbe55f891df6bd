"""The imports of a Python file, and the declared files they mean.

The file `ops/gain.py` is module `gain` for files beside it and `ops.gain` for files at the top.
Other files may use either name if no other declared file ends the same way.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import PurePosixPath
from typing import NamedTuple

from npumake.errors import Place, ProjectError

PACKAGE_FILE = "__init__"


class Import(NamedTuple):
    """`from ..a.b import c, d` has level 2, module `a.b` and two names; `import a.b` has none."""

    module: str
    names: tuple[str, ...]
    level: int
    place: Place


class Library:
    """The declared files as modules; a `path` is a folder or a file without its suffix."""

    def __init__(self, files: Collection[str]) -> None:
        self._files: dict[str, str] = {}
        for name in sorted(files):
            other = self._files.setdefault(path_of(name), name)
            if other != name:
                message = f"`{other}` and `{name}` are one module"
                raise ProjectError(message, name, "rename one of them")
        folders = {str(above) for path in self._files for above in PurePosixPath(path).parents}
        self._paths = {*self._files, *folders} - {"."}

    def file(self, path: str) -> str | None:
        """The module's file; None for a folder without __init__.py."""
        return self._files.get(path)

    def path(self, importer: str, module: str, level: int = 0) -> str | None:
        """The path of the declared module that `importer` means; None if there is none.

        Raises ProjectError if several modules fit.
        """
        folder = PurePosixPath(importer).parent
        relative = module.replace(".", "/")
        if level:
            above = [folder, *folder.parents][level - 1 :]
            return self._exact(above[:1], relative) or (
                self._suffix(relative) if level == 1 else None
            )
        return self._exact([folder, PurePosixPath()], relative) or self._suffix(relative)

    def reached(self, importer: str, statement: Import) -> list[str] | None:
        """The paths of the modules that an import executes; None if one is not declared."""
        path = self.path(importer, statement.module, statement.level)
        if path is None:
            return None
        inside = [below for name in statement.names if (below := f"{path}/{name}") in self._paths]
        is_bare = self.file(path) is None  # a folder without __init__.py holds only modules
        return None if is_bare and len(inside) < len(statement.names) else [path, *inside]

    def has(self, path: str) -> bool:
        return path in self._paths

    def _exact(self, folders: Iterable[PurePosixPath], relative: str) -> str | None:
        paths = (str(folder / relative) for folder in folders)
        return next((path for path in paths if path in self._paths), None)

    def _suffix(self, relative: str) -> str | None:
        matches = sorted(path for path in self._paths if path.endswith(f"/{relative}"))
        if len(matches) > 1:
            name = relative.replace("/", ".")
            raise ProjectError(f"`{name}` may be {' or '.join(matches)}", hint="rename one of them")
        return matches[0] if matches else None


def imports(name: str, data: bytes) -> Iterator[Import]:
    """All imports in a file, nested ones too; none if it is not Python."""
    try:
        tree = ast.parse(data)
    except (SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, (), 0, _place(name, node))
        elif isinstance(node, ast.ImportFrom):
            names = tuple(alias.name for alias in node.names if alias.name != "*")
            yield Import(node.module or "", names, node.level, _place(name, node))
        elif isinstance(node, ast.Name) and node.id == "__import__":
            yield Import(node.id, (), 0, _place(name, node))


def closure(names: Iterable[str], files: Mapping[str, bytes]) -> set[str]:
    """The named files and all that they import, directly or indirectly."""
    library, reached, waiting = Library(files), set[str](), [*names]
    while waiting:
        name = waiting.pop()
        if name in reached:
            continue
        reached.add(name)
        for import_ in imports(name, files[name]):
            for path in library.reached(name, import_) or ():
                waiting += filter(None, map(library.file, _way(path)))
    return reached


def _way(path: str) -> list[str]:
    """A module and its packages, all of which an import executes."""
    return [path, *map(str, [*PurePosixPath(path).parents][:-1])]


def path_of(file: str) -> str:
    """`ops/gain` of ops/gain.py, `ops` of ops/__init__.py."""
    path = PurePosixPath(file).with_suffix("")
    return str(path.parent if path.name == PACKAGE_FILE else path)


def _place(name: str, node: ast.stmt | ast.expr) -> Place:
    return Place(name, node.lineno, node.col_offset + 1)
