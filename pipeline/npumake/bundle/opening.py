"""Opens a file of bundles: plain, packed, or secure with its keys."""

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
    """All bundles of the file by name, or only `name`. With `keys` the file must be secure.

    Raises GraphError for a wrong or damaged file and an unknown name. Raises ProjectError for a
    name together with keys: a secure file holds one model.
    """
    if keys is not None:
        if name is not None:
            raise ProjectError("a secure model is not a packed one", "-m", "leave the name out")
        return {path.stem: secure.load_secure(path, keys)}
    return bundles(path) if name is None else {name: chosen(path, name)}


def opened_one(path: Path, name: str | None = None, keys: secure.Keys | None = None) -> Bundle:
    """As `opened`, for one bundle. Raises GraphError for several bundles without a name."""
    return chosen(path, name) if keys is None else opened(path, name, keys)[path.stem]
