"""The parts of a hand-over, their sizes, and whether they changed since they were written; of a
directory or its ZIP."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from npumake import digest
from npumake.compilers.handover import Handover
from npumake.compilers.handover_package import LIST
from npumake.errors import CacheError

AS_WRITTEN, CHANGED, ADDED, ABSENT = "as written", "changed", "not in the list", "gone"


class HandoverPart(NamedTuple):
    """A file, or all files of a folder (its name ends in a slash) with the same state."""

    name: str
    files: int
    bytes: int
    state: str


def handover_parts(path: Path) -> tuple[HandoverPart, ...]:
    """The parts sorted by name. Raises CacheError for anything but a hand-over."""
    contents = dict(_sizes_and_digests(path))
    if LIST not in contents:
        raise CacheError(f"not a hand-over: {LIST} is missing", str(path))
    listed = _list(path)
    parts: dict[tuple[str, str], tuple[int, int]] = {}
    for name in sorted({*contents, *listed}):
        size, sha256 = contents.get(name, (0, None))
        expected = sha256 if name == LIST else listed.get(name)
        state = ABSENT if sha256 is None else ADDED if expected is None else AS_WRITTEN
        state = CHANGED if expected and sha256 and expected != sha256 else state
        folder, slash, _ = name.rpartition("/")
        key = folder + slash if slash else name, state
        files, size_before = parts.get(key, (0, 0))
        parts[key] = files + 1, size_before + size
    return tuple(
        HandoverPart(name, *counts, state) for (name, state), counts in sorted(parts.items())
    )


def is_handover(path: Path) -> bool:
    """Whether the directory contains a hand-over."""
    return (path / LIST).is_file()


def _sizes_and_digests(path: Path) -> Iterator[tuple[str, tuple[int, str]]]:
    if not path.is_dir():
        for name, data in Handover.load(path).files():
            yield name, (len(data), digest.of_bytes(data))
        return
    for file in path.rglob("*"):
        if file.is_file():
            size = file.stat().st_size
            yield file.relative_to(path).as_posix(), (size, digest.of_file(file))


def _list(path: Path) -> dict[str, str]:
    data = (
        (path / LIST).read_bytes()
        if path.is_dir()
        else next(data for name, data in Handover.load(path).files() if name == LIST)
    )
    try:
        return {str(name): str(sha256) for name, sha256 in json.loads(data)["sha256"].items()}
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError) as error:
        raise CacheError(f"{LIST} is not the list of a hand-over", str(path)) from error
