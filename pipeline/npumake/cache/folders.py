"""Makes folders. An error names what stands in the way."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from npumake.errors import CacheError

CURES = {  # by error number
    errno.ENOSPC: "free some space",
    errno.EDQUOT: "free some space",
    errno.ENAMETOOLONG: "name a shorter path",
    errno.ELOOP: "a link on this path leads to itself: remove it",
}


def make_folder(path: Path) -> Path:
    """Makes a folder and those above it, and returns it. Raises CacheError with a hint of what to
    move, or to make writable."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = os.strerror(error.errno or 0).lower()
        message = f"this folder cannot be made: {reason}"
        raise CacheError(message, str(path), cure_of(path, error.errno)) from error
    return path


def cure_of(folder: Path, number: int | None, file: Path | None = None) -> str:
    """What to do where `folder`, or `file` in it, cannot be made, for an error number of the
    system."""
    if number in CURES:
        return CURES[number]
    if number == errno.ENOENT:
        return f"make the folder `{folder}` first"
    return in_the_way(folder, file) or f"make `{_nearest_folder(folder)}` writable, or name another"


def in_the_way(folder: Path, file: Path | None = None) -> str:
    """What to move where a folder, or `file` in it, must be; empty if nothing stands there."""
    nearest = next((path for path in (folder, *folder.parents) if os.path.lexists(path)), None)
    if nearest is not None and not os.path.isdir(nearest):  # or a link to nothing
        return f"`{nearest}` must be a folder and is none: move or remove it"
    if file is not None and os.path.isdir(file):
        return f"`{file}` is a folder: name a file in it, or move the folder"
    return ""


def _nearest_folder(folder: Path) -> Path:
    return next((path for path in (folder, *folder.parents) if path.is_dir()), folder)
