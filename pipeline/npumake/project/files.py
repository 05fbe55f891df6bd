"""The files a project names, in an order that does not depend on the file system.

`${ENV:NAME}` in a path is replaced when the files are listed. Cache keys hold only the names and
bytes of the files, not the variable.

The module imports no parser, since every build runs it, even with nothing to do.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from fnmatch import translate
from pathlib import Path, PurePosixPath
from types import UnionType
from typing import Any, Union, get_args, get_origin

from npumake.digest import is_generated, is_stored, key_of, of_bytes
from npumake.errors import CacheError, ProjectError, Route
from npumake.project.hints import hints_of
from npumake.project.paths import CodeGlob, FileGlob, FilePath, Metric, ModuleGlob

MAX_MODEL_BYTES = (1 << 31) - 1  # of a model: the limit of a protobuf message and a flatbuffer
MAX_DOCUMENT_BYTES = 1 << 28  # of JSON about a model
_WILD = re.compile(r"[*?\[]")
_VARIABLE = re.compile(r"\$\{ENV:([A-Za-z_][A-Za-z0-9_]*)\}")

# (name, path), sorted by name; a name never holds a root folder. A path is a string: there may be
# thousands, in every build.
NamedFiles = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class SourceFile:
    """One file of a project as stages see it: a name without folders, and its content."""

    name: str
    path: str
    digest: str

    def read(self) -> bytes:
        """The file's bytes. Raises CacheError if they no longer match `digest`."""
        with open(self.path, "rb") as file:
            data = file.read()
        if of_bytes(data) != self.digest:
            raise CacheError("the file changed while it was being used", self.name, "run it again")
        return data

    @property
    def size(self) -> int:
        """In bytes."""
        return os.path.getsize(self.path)

    def part(self, offset: int, length: int) -> bytes:
        """`length` bytes from `offset`, unverified: the publisher of the result checks that the
        file did not change. Raises CacheError if the file is too short."""
        with open(self.path, "rb") as file:
            file.seek(offset)
            data = file.read(length)
        if len(data) < length:
            raise CacheError("the file changed while it was being used", self.name, "run it again")
        return data


def refuse_huge(path: Path | str, where: str = "") -> None:
    """Raises ProjectError for a file beyond the limit of all model formats, before it is read.
    Ignores missing and special files, which callers refuse."""
    if os.path.isfile(path) and (size := os.path.getsize(path)) > MAX_MODEL_BYTES:
        message = f"a model of {size:,} bytes; no format holds more than 2 GiB in one file"
        hint = "is it the model? larger weights are in several files beside it"
        raise ProjectError(message, where or str(path), hint)


def refuse_long(path: Path) -> None:
    """Raises ProjectError for a document, .json, longer than a build writes, before it is read."""
    size = os.path.getsize(path) if path.suffix == ".json" and path.is_file() else 0
    if size > MAX_DOCUMENT_BYTES:
        raise ProjectError(
            f"a document of {size:,} bytes; it may have {MAX_DOCUMENT_BYTES:,}", str(path)
        )


def model_bytes(path: Path) -> bytes:
    """The bytes of a model file. Raises ProjectError for a huge one, OSError."""
    refuse_huge(path)
    return path.read_bytes()


SourceFiles = Mapping[str, tuple[SourceFile, ...]]  # by the dotted route of the key that names them


@dataclass(frozen=True)
class FileSource:
    """A key that names one file, or many by a pattern; `confined` ones must be in the project."""

    keys: tuple[str, ...]  # a model's input may be called `input.1`: the route cannot be split
    pattern: str
    many: bool
    confined: bool = False
    rest: str = ""  # of a key's value that is not a path and counts beside the file's bytes
    is_module: bool = False  # it is named by its path in the project, as it is imported

    @property
    def route(self) -> str:
        return ".".join(self.keys)


def sources(sections: Any) -> tuple[FileSource, ...]:
    """All files and patterns in `sections`, or in one section."""
    return tuple(_sources(type(sections), sections, ()))


def _sources(hint: Any, value: Any, route: tuple[str, ...]) -> Iterator[FileSource]:
    """The files in `value`, by its type hint: at run time a FilePath is a plain string."""
    if hint in (FilePath, FileGlob, CodeGlob, ModuleGlob) and isinstance(value, str):
        is_code = hint in (CodeGlob, ModuleGlob)
        yield FileSource(route, value, hint is not FilePath, is_code, is_module=hint is ModuleGlob)
    if hint is Metric and ".py:" in value:
        path, _, function = value.rpartition(":")
        yield FileSource(route, path, many=True, confined=True, rest=function)
    for below, inner, item in _inside(hint, value):
        yield from _sources(inner, item, (*route, *below))


def _inside(hint: Any, value: Any) -> list[tuple[tuple[str, ...], Any, Any]]:
    """The parts of `value`, if it is a `hint`, as (route below it, type, value)."""
    origin, arguments = get_origin(hint), get_args(hint)
    if is_dataclass(hint) and hint is type(value):
        hints = hints_of(hint)
        return [((key_of(k),), hints[k.name], getattr(value, k.name)) for k in fields(value)]
    if origin in (Union, UnionType):
        return [((), member, value) for member in arguments if member is not type(None)]
    if origin is Mapping and isinstance(value, Mapping):
        return [((name,), arguments[1], item) for name, item in value.items()]
    if origin is tuple and isinstance(value, tuple):
        return [((str(n),), arguments[0], item) for n, item in enumerate(value)]
    return []


def source_files(directory: Path, source: FileSource) -> NamedFiles:
    """The existing files of `source` in the project `directory`.

    Raises ProjectError for an unset variable, at the key that uses it, and for a confined file
    outside the project.
    """
    _require_variables(source)
    if not source.many:
        return _single(directory / expanded(source.pattern))
    files = pattern_files(directory, source.pattern)
    if source.confined:
        _refuse_elsewhere(directory, source, files)
    if source.is_module:
        return tuple((Path(os.path.relpath(path, directory)).as_posix(), path) for _, path in files)
    return files


def variables_of(source: FileSource) -> tuple[str, ...]:
    """The environment variables in its pattern."""
    return tuple(_VARIABLE.findall(source.pattern))


def folders_listed(directory: Path, source: FileSource) -> Iterator[str]:
    """Every folder that a listing of `source` reads, or more, and every link in one: its target
    decides whether it is listed."""
    if not source.many:
        return
    root, parts = split_pattern(directory, source.pattern)
    waiting = [(str(root), max(len(parts), 1))]
    while waiting:
        folder, depth = waiting.pop()
        if not os.path.isdir(folder):
            continue
        yield folder
        for entry in _entries(folder):
            if entry.is_symlink():
                yield entry.path
            if "**" in parts and entry.is_dir(follow_symlinks=False):
                waiting.append((entry.path, depth))
            elif depth > 1 and os.path.isdir(entry.path):
                waiting.append((entry.path, depth - 1))


def _require_variables(source: FileSource) -> None:
    for name in variables_of(source):
        if not os.environ.get(name):
            hint = f"`${{ENV:{name}}}` is replaced by its value"
            message = f"the environment variable `{name}` is not set, or empty"
            raise ProjectError(message, Route(source.route), hint)


def _refuse_elsewhere(directory: Path, source: FileSource, files: NamedFiles) -> None:
    home = directory.resolve()
    for _, path in files:
        if not Path(path).resolve().is_relative_to(home):
            message = f"`{source.pattern}` names Python outside the project"
            raise ProjectError(message, Route(source.route), "copy it into the project's directory")


def pattern_files(directory: Path, pattern: str) -> NamedFiles:
    """The plain files that match `pattern`, as (name, path) sorted by name.

    `*`, `?` and `[…]` match within a folder, `**` any number of folders. The name is the POSIX
    path below the last folder before the first wildcard. A folder means all its files. Hidden
    files, and linked folders under `**`, are skipped. A missing folder has no files. Raises
    ProjectError for a folder that cannot be listed.
    """
    root, parts = split_pattern(directory, pattern)
    if is_generated(root):
        return ()
    if not parts and PurePosixPath(pattern).parts and os.path.isdir(root):
        parts = ("*",)
    elif not parts:
        return _single(root)
    # Wildcards in a variable's value match only themselves.
    *folders, last = (expanded(part, wild=r"[\g<0>]") for part in parts)
    patterns = (*folders, "**", "*") if last == "**" else (*folders, last)
    names = sorted(set(_below(str(root), patterns, "")))
    return tuple((name, f"{root}/{name}") for name in names)


def split_pattern(directory: Path, pattern: str) -> tuple[Path, tuple[str, ...]]:
    """The path up to the first part with a wildcard, with its variables expanded; the others."""
    parts = PurePosixPath(pattern).parts
    literal = next((n for n, part in enumerate(parts) if _WILD.search(part)), len(parts))
    return directory.joinpath(*map(expanded, parts[:literal])), parts[literal:]


def expanded(part: str, wild: str = r"\g<0>") -> str:
    """`part` with its variables expanded; `wild` replaces wildcard characters in the values."""
    return _VARIABLE.sub(lambda match: _WILD.sub(wild, os.environ.get(match[1], "")), part)


def _single(path: Path) -> NamedFiles:
    return ((path.name, str(path)),) if is_stored(path) else ()


def _below(folder: str, parts: tuple[str, ...], prefix: str) -> Iterator[str]:
    """The names of matching files below `folder`, each with `prefix`."""
    part, rest = parts[0], parts[1:]
    if part == "**":
        yield from _below(folder, rest, prefix)
        for entry in _entries(folder):
            if entry.is_dir(follow_symlinks=False):
                yield from _below(entry.path, parts, f"{prefix}{entry.name}/")
        return
    matches = re.compile(translate(part)).match
    entries = [entry for entry in _entries(folder) if matches(entry.name)]
    if not rest:
        yield from (prefix + entry.name for entry in entries if _is_file(entry))
        return
    for entry in entries:
        if os.path.isdir(entry.path):  # of a link to itself `entry` would raise
            yield from _below(entry.path, rest, f"{prefix}{entry.name}/")


def _is_file(entry: os.DirEntry[str]) -> bool:
    """False for folders and dangling links. Raises ProjectError for pipes, devices and the like."""
    if not entry.is_symlink() and entry.is_file():  # the common case, without a system call
        return True
    if os.path.isfile(entry.path):
        return True
    is_dead = entry.is_symlink() and not os.path.lexists(os.path.realpath(entry.path))
    if not is_dead and not os.path.isdir(entry.path):
        message = "not a plain file: a pipe, a device, or a link to itself"
        raise ProjectError(message, entry.path, "remove it, or write a pattern that leaves it out")
    return False


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return [entry for entry in entries if not entry.name.startswith(".")]
    except (FileNotFoundError, NotADirectoryError, UnicodeEncodeError):
        return []
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:  # so long that there can be none
            return []
        raise ProjectError(f"cannot list the folder: {error.strerror}", folder) from None
