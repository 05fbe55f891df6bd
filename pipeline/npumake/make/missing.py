"""Messages about files that a project names and that cannot be read."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from npumake.errors import ProjectError, Route
from npumake.project.files import FileSource, source_files

HINT_NOT_PLAIN = (
    "folders, pipes, devices, links to themselves and kernel files (/proc) are not read"
)


def no_file(directory: Path, source: FileSource, vendor_dialect: str | None) -> ProjectError:
    """The error for a missing source. A project in a vendor's dialect shows resolved paths."""
    own = vendor_dialect is None
    name = source.pattern if own else display_path(directory / source.pattern)
    message = f"no file matches `{name}`" if source.many else f"no file `{name}`"
    hint = "paths start at the project's directory"
    try:
        path = directory / source.pattern
        os.fsencode(path)  # `lexists` returns False if this fails
        if os.path.lexists(path) and not (source.many and os.path.isdir(path)):
            message, hint = f"`{name}` is not a plain file", HINT_NOT_PLAIN
    except UnicodeEncodeError:
        hint = "this locale cannot encode the file name; set LC_ALL=C.UTF-8"
    return ProjectError(message, Route(source.route), hint)


def file_named(directory: Path, sources: Iterable[FileSource], name: str) -> str:
    """The path of the one source of that name; else the name."""
    paths = {
        path
        for source in sources
        for named, path in source_files(directory, source)
        if named == name
    }
    return display_path(Path(paths.pop())) if len(paths) == 1 else name


def display_path(path: Path) -> str:
    """A path as the user would type it: relative below the working directory, else in full."""
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except ValueError:
        return os.path.normpath(path)
