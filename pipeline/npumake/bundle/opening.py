"""A file of bundles opened, whichever it is: plain, packed, or secure and then with its keys."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from npumake.bundle.archive import Bundle
from npumake.bundle.pack import bundles, chosen
from npumake.errors import ProjectError
from npumake.late import when_used

with when_used("npumake.bundle.secure"):  # it brings the cryptography along
    from npumake.bundle import secure


def opened(
    path: Path, name: str | None = None, keys: secure.Keys | None = None
) -> Mapping[str, Bundle]:
    """By name: all that the file holds, or the one of that `name`; with keys the secure one.

    Raises GraphError for what the file is not or does not hold, ProjectError for a name in a
    secure file, which holds one model.
    """
    if keys is not None:
        if name is not None:
            raise ProjectError("a secure model is no packed one", "-m", "leave the name out")
        return {path.stem: secure.load_secure(path, keys)}
    return bundles(path) if name is None else {name: chosen(path, name)}


def opened_one(path: Path, name: str | None = None, keys: secure.Keys | None = None) -> Bundle:
    """As `opened`; a file that holds several is refused without a name."""
    return chosen(path, name) if keys is None else opened(path, name, keys)[path.stem]
