"""The source code that a stage depends on, and the versions of the libraries that this code uses.

The closure of a module is itself and every `npumake.*` module it imports, transitively. A module
counts as its syntax tree without docstrings: comments, docstrings, formatting and code for type
checkers do not matter. A package's `__init__` counts when it is imported by name; otherwise it only
runs imports. A module called `assets` counts with every other file beside and below it, byte by
byte.
"""

from __future__ import annotations

import ast
import os
import platform
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.metadata import version
from pathlib import Path

from npumake import digest
from npumake.cache.publish import replacing
from npumake.cache.sealed import sealed, unsealed
from npumake.cache.signature import FileDigests
from npumake.errors import CacheError

PACKAGE = Path(__file__).parents[1]
ASSETS = "assets"
# Libraries whose import name differs from their distribution's.
DISTRIBUTIONS = {
    "PIL": "pillow",
    "google": "protobuf",
    "onnx_ir": "onnx-ir",
    "yaml": "pyyaml",
}
# Libraries that change no artifact: a build opens no secure file. Their updates are for security
# and frequent; they rebuild nothing.
NOT_KEYED = frozenset({"cryptography"})


@dataclass(frozen=True)
class ModuleSource:
    """A module: the digest of its normalized syntax tree, and its imports."""

    digest: str
    imports: tuple[str, ...]

    @cached_property
    def own_modules(self) -> tuple[str, ...]:
        return tuple(name for name in self.imports if name.split(".")[0] == "npumake")

    @cached_property
    def libraries(self) -> frozenset[str]:
        return frozenset(self.imports) - frozenset(self.own_modules)


@dataclass(frozen=True)
class CodeClosure:
    """A closure: digests by module, and the versions of the imported libraries."""

    modules: Mapping[str, str]
    tools: Mapping[str, str]

    @cached_property
    def digest(self) -> str:
        return digest.of_document(self.modules)


class SourceCode:
    """The sources of the package, parsed once per content.

    `memo` stores parsed modules by SHA-256; it is valid as long as this module, which parses them,
    is unchanged. Another lies beside the package's bytecode, for the first build of a new cache.
    """

    def __init__(self, files: FileDigests, memo: Path) -> None:
        self._files = files
        self._memo = memo
        self._reader = files.of(Path(__file__))
        self._digests = _read_memo(memo, self._reader)
        self._fresh = self._parsed = False
        self._closures: dict[tuple[str, ...], CodeClosure] = {}
        self._modules: dict[str, ModuleSource | None] = {}  # stages share most of what they import

    def closure(self, *modules: str) -> CodeClosure:
        """The closure of all these modules."""
        if modules not in self._closures:
            self._closures[modules] = self._closure(modules)
        return self._closures[modules]

    def modules(self, closure: str) -> Mapping[str, str] | None:
        """The modules of a closure of this code, by its digest; None for other digests."""
        closures = (code.modules for code in self._closures.values() if code.digest == closure)
        return next(closures, None)

    @cached_property
    def package_digest(self) -> str:
        """The digest of all files of the package, on which a plan depends."""
        digests = {_in_package(path): self._files.of(path) for path in _package_files(str(PACKAGE))}
        return digest.of_document(digests)

    def save(self) -> None:
        if self._parsed and not sys.dont_write_bytecode:
            with suppress(CacheError, OSError):  # an installation that this user cannot write
                self._write(_installed_memo())
            self._parsed = False
        if self._fresh:
            self._write(self._memo)
            self._fresh = False

    def _write(self, memo: Path) -> None:
        with replacing(memo) as temporary:
            temporary.write_bytes(sealed(_memo_of(self._reader), self._digests))

    def _closure(self, roots: Iterable[str]) -> CodeClosure:
        modules: dict[str, str] = {}
        libraries: set[str] = set()
        waiting = [*roots]
        while waiting:
            name = waiting.pop()
            if name in modules or (source := self._module(name)) is None:
                continue
            modules[name] = source.digest
            modules |= self._assets(name)
            waiting += source.own_modules
            libraries |= source.libraries
        named = sorted(DISTRIBUTIONS.get(library, library) for library in libraries - NOT_KEYED)
        tools = {name: _version(name) for name in named}
        python = ".".join(platform.python_version_tuple()[:2])  # versions differ in syntax trees
        return CodeClosure(dict(sorted(modules.items())), {**tools, "python": python})

    def _assets(self, module: str) -> dict[str, str]:
        """Digests of the files of an `assets` module."""
        if module.rpartition(".")[2] != ASSETS:
            return {}
        room = PACKAGE.joinpath(*module.split(".")[1:-1])
        files = [file for file in _files(str(room)) if not _is_module(file)]
        return {_in_package(file): self._files.of(file) for file in files}

    def _module(self, name: str) -> ModuleSource | None:
        """None for a name that is not a module."""
        if name not in self._modules:
            path = _module_file(name)
            self._modules[name] = None if path is None else self._source(path)
        return self._modules[name]

    def _source(self, path: str) -> ModuleSource:
        content = self._files.of(path)
        if content not in self._digests and not self._fresh:
            self._digests = _read_memo(_installed_memo(), self._reader) | self._digests
            self._fresh = True
        if content not in self._digests:
            source = parsed(Path(path).read_text(encoding="utf-8"))
            self._digests[content] = [source.digest, *source.imports]
            self._parsed = True
        own, *imports = self._digests[content]
        return ModuleSource(own, tuple(imports))


def parsed(text: str) -> ModuleSource:
    tokens: list[str] = []
    names: set[str] = set()
    _read(ast.parse(text), tokens, names)
    # Our own modules in full; of other libraries the top name, without the standard library.
    own_names = {name for name in names if name.split(".")[0] == "npumake"}
    imports = (
        own_names | {name.split(".")[0] for name in names - own_names} - sys.stdlib_module_names
    )
    return ModuleSource(digest.of_bytes("\n".join(tokens).encode()), tuple(sorted(imports)))


def _read(node: ast.AST, tokens: list[str], names: set[str]) -> None:
    """Collects the tokens of a node without docstrings, and its imports. A first build reads
    hundreds of modules: ast.dump and two walks would take twice as long."""
    if isinstance(node, ast.If) and _is_for_type_checkers(node):
        return
    kind = type(node)
    tokens.append(kind.__name__)
    names.update(_imported(node))
    for field in kind._fields:
        value = getattr(node, field, None)
        if isinstance(value, list):
            has_docstring = field == "body" and isinstance(node, WITH_DOCSTRING) and _is_text(value)
            tokens.append("[")
            for statement in value[has_docstring:]:
                if isinstance(statement, ast.AST):
                    _read(statement, tokens, names)
                else:
                    tokens.append(repr(statement))
            tokens.append("]")
        elif isinstance(value, ast.AST):
            _read(value, tokens, names)
        else:
            tokens.append(repr(value))


def _imported(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module:
        yield node.module
        # A name imported from a package may be a module.
        yield from (f"{node.module}.{alias.name}" for alias in node.names)


WITH_DOCSTRING = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def _is_for_type_checkers(node: ast.If) -> bool:
    is_typing = isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    return is_typing and not node.orelse


def _is_text(body: list[ast.stmt]) -> bool:
    """Whether the body begins with a docstring, or another constant without effect."""
    first = body[0] if body else None
    return isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)


def _module_file(name: str) -> str | None:
    """The file of one of our modules; None for a name that is not a module."""
    path = os.path.join(PACKAGE, *name.split(".")[1:])
    # A folder of another version may remain with Python's cache in it.
    if os.path.isfile(room := os.path.join(path, "__init__.py")):
        return room
    return module if os.path.isfile(module := f"{path}.py") else None


def _package_files(directory: str) -> list[str]:
    """Every source and data file of the package, sorted."""
    return [file for file in _files(directory) if file.endswith((".py", ".yaml"))]


def _in_package(file: str) -> str:
    return file.removeprefix(os.path.join(PACKAGE, ""))


def _is_module(file: str) -> bool:
    """Whether Python imports the file. A file in a folder that is not a package is a script."""
    is_script = not os.path.exists(os.path.join(os.path.dirname(file), "__init__.py"))
    return file.endswith(".pyc") or (file.endswith(".py") and not is_script)


def _files(directory: str) -> list[str]:
    paths = []
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.is_dir() and entry.name != "__pycache__":
                paths += _files(entry.path)
            elif entry.is_file():
                paths.append(entry.path)
    return sorted(paths)


@cache
def _version(distribution: str) -> str:
    return version(distribution)


def _read_memo(memo: Path, reader: str) -> dict[str, list[str]]:
    """The memo; empty if it is absent, damaged or foreign, so that the sources are parsed
    again."""
    try:
        return unsealed(_memo_of(reader), memo.read_bytes()) or {}
    except OSError:
        return {}


def _installed_memo() -> Path:
    return PACKAGE / "__pycache__" / "sources.json"


def _memo_of(reader: str) -> str:
    return f"sources read by {reader}"
