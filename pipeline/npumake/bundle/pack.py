"""Several bundles in one file.

pack.json               format, version, names in order, SHA-256 of each
models/<name>.hybrid    the bundles, byte for byte
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

from npumake import digest
from npumake.bundle.archive import DAMAGE, PACK, Bundle, whole, zipped
from npumake.errors import GraphError, did_you_mean

FORMAT = "npumake-pack"
VERSION = 1
MAX_ZIP_BYTES = (1 << 32) - 1  # bytes of a pack: those of a ZIP without 64-bit sizes


def pack(models: Mapping[str, bytes]) -> bytes:
    """One file with these bundles by name. Raises GraphError for data other than a bundle, or a
    pack itself, and for more bytes than a pack may have."""
    for name, data in models.items():
        if is_packed(io.BytesIO(data)):
            raise GraphError(f"model: {name} is a packed model, it can not be packed again!")
        Bundle.from_bytes(data, name)
    members = {_member(name): data for name, data in models.items()}
    document = {
        "format": FORMAT,
        "version": VERSION,
        "models": list(models),
        "sha256": {name: digest.of_bytes(data) for name, data in models.items()},
    }
    archive = zipped({PACK: digest.canonical(document), **members})
    if len(archive) > MAX_ZIP_BYTES:
        raise GraphError(f"a pack of {len(archive):,} bytes; it may have {MAX_ZIP_BYTES:,}")
    return archive


def is_packed(file: BinaryIO) -> bool:
    try:
        with zipfile.ZipFile(file) as archive:
            return PACK in archive.namelist()
    except DAMAGE:
        return False


def unpack(data: bytes, file: str) -> dict[str, Bundle]:
    """The bundles of a pack by name, in order. Raises GraphError."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = archive.infolist()
            if sum(entry.file_size for entry in entries) > len(data):
                raise ValueError("its members overlap")
            if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries):
                raise ValueError("its members are compressed")
            document = json.loads(archive.read(PACK))
            if (document["format"], document["version"]) != (FORMAT, VERSION):
                raise GraphError(f"a pack of another version: {document['version']}", file)
            models = {str(name): archive.read(_member(name)) for name in document["models"]}
        if {name: digest.of_bytes(content) for name, content in models.items()} != document[
            "sha256"
        ]:
            raise ValueError("a bundle in it was changed")
    except DAMAGE as error:
        raise GraphError(f"not a packed model, or damaged: {error}", file) from error
    return {
        name: Bundle.from_bytes(content, f"{name} in {file}") for name, content in models.items()
    }


def bundles(path: Path) -> dict[str, Bundle]:
    """The bundles of a pack by name; of a plain bundle, itself by the file's name."""
    if not path.is_file():
        raise GraphError("no such file", str(path))
    with path.open("rb") as file:
        packed = is_packed(file)
    try:
        return (
            unpack(whole(path, MAX_ZIP_BYTES), path.name)
            if packed
            else {path.stem: Bundle.load(path)}
        )
    except GraphError as error:
        if path.suffix != Bundle.suffix:
            error.hint = error.hint or f"a bundle is a {Bundle.suffix}, this is a {path.suffix}"
        raise


def single(path: Path) -> Bundle:
    """The bundle in a plain file. Raises GraphError for a pack."""
    if path.is_file():
        with path.open("rb") as file:
            if is_packed(file):
                raise GraphError("pack model is not supported", str(path))
    return chosen(path, None)


def chosen(path: Path, name: str | None) -> Bundle:
    """The bundle of that name; the name is optional if the file holds one bundle."""
    models = bundles(path)
    if name is None and len(models) == 1:
        return next(iter(models.values()))
    if name not in models:
        message = "a packed model, and none of its models is named" if name is None else ""
        hint = did_you_mean(name or "", models)
        raise GraphError(message or f"no model `{name}`", path.name, hint)
    return models[name]


def _member(name: str) -> str:
    if not isinstance(name, str) or not name or "/" in name or "\\" in name:
        raise ValueError(f"no model is called {name!r}")
    return f"models/{name}{Bundle.suffix}"
