"""What is said of a file that a project names and that cannot be read."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from npumake.errors import ProjectError, Route
from npumake.project.files import FileSource, source_files

HINT_NOT_PLAIN = (
    "a folder, a pipe, a device, a link to itself or what the kernel makes up (/proc) is not read"
)


def no_file(directory: Path, source: FileSource, vendor_dialect: str | None) -> ProjectError:
    """A vendor's file says other paths than the project in the tool's output folder has."""
    own = vendor_dialect is None
    name = source.pattern if own else display_path(directory / source.pattern)
    what = f"no file matches `{name}`" if source.many else f"no file `{name}`"
    hint = "paths start at the project's directory"
    try:
        path = directory / source.pattern
        os.fsencode(path)  # `lexists` answers False where it cannot
        if os.path.lexists(path) and not (source.many and os.path.isdir(path)):
            what, hint = f"`{name}` is no plain file", HINT_NOT_PLAIN
    except UnicodeEncodeError:
        hint = "this locale has no such letters in names of files; LC_ALL=C.UTF-8 has them"
    return ProjectError(what, Route(source.route), hint)


def file_named(directory: Path, sources: Iterable[FileSource], name: str) -> str:
    """The path of the one source of that name, which its folder does not say; else the name."""
    paths = {
        path
        for source in sources
        for named, path in source_files(directory, source)
        if named == name
    }
    return display_path(Path(paths.pop())) if len(paths) == 1 else name


def display_path(path: Path) -> str:
    """A path as the user would type it: from here when it is below, else in full."""
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except ValueError:
        return os.path.normpath(path)
