"""Reads the metadata that a model file carries.

.onnx                      metadata_props `edgefirst`, `labels`
.hybrid .tflite .dvm .hef  members edgefirst.json, labels.txt of a ZIP: the file itself, or appended
"""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from npumake.bundle.archive import BESIDE, Bundle
from npumake.bundle.opening import opened_one
from npumake.detection.entry import MAX_JSON_BYTES
from npumake.detection.metadata import Metadata, read_metadata
from npumake.detection.notes import labels_of, metadata_of
from npumake.errors import GraphError, ProjectError
from npumake.graph import Graph
from npumake.late import when_used

with when_used("npumake.bundle.secure"):
    from npumake.bundle import secure

METADATA, CLASSES = BESIDE
COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)

# Exceptions of zipfile for a damaged ZIP; a file without a ZIP is not an error.
_DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, ValueError)


class EmbeddedMetadata(NamedTuple):
    """A file's detector metadata, or None, and its class names."""

    metadata: Metadata | None
    classes: tuple[str, ...]


def embedded_metadata(
    path: Path, model: str | None = None, keys: secure.Keys | None = None
) -> EmbeddedMetadata:
    """The metadata and classes in the file. `model` selects a model of a packed file, `keys` open a
    secure one. Raises PipelineError."""
    if path.suffix != Bundle.suffix:
        return EmbeddedMetadata(metadata_in(path), labels_in(path))
    beside = opened_one(path, model, keys).beside
    data = beside.get(METADATA)
    metadata = None if data is None else read_metadata(data, f"{METADATA} in {path.name}")
    return EmbeddedMetadata(metadata, _classes(beside.get(CLASSES, b""), path))


def metadata_in(path: Path) -> Metadata | None:
    """The metadata in the file, or None. Raises ProjectError for invalid metadata, GraphError for
    a missing file or an invalid `.onnx`."""
    if path.suffix == ".onnx":
        return metadata_of(Graph.load(path))
    data = _member(path, METADATA)
    return None if data is None else read_metadata(data, f"{METADATA} in {path.name}")


def labels_in(path: Path) -> tuple[str, ...]:
    """The class names by index: of an `.onnx` its metadata's, of a ZIP one per line, without blank
    ones. Raises ProjectError, and GraphError for an invalid `.onnx`."""
    if path.suffix == ".onnx":
        return labels_of(Graph.load(path))
    return _classes(_member(path, CLASSES) or b"", path)


def _classes(data: bytes, path: Path) -> tuple[str, ...]:
    try:
        lines = data.decode().splitlines()
    except UnicodeDecodeError as error:
        raise ProjectError(f"not readable: {error}", f"{CLASSES} in {path.name}") from error
    return tuple(line.strip() for line in lines if line.strip())


def members(metadata: Metadata | None, labels: Sequence[str]) -> dict[str, bytes]:
    """The metadata and the classes as members of a ZIP, those that there are."""
    contents: dict[str, bytes] = {}
    if metadata is not None:
        text = json.dumps(metadata.document, ensure_ascii=False, indent=1)
        contents[METADATA] = text.encode()
    if labels:
        # A line break in a label, or a blank one, would shift all later ones.
        lines = (" ".join(text.split()) or str(index) for index, text in enumerate(labels))
        contents[CLASSES] = "".join(f"{line}\n" for line in lines).encode()
    return contents


def _member(path: Path, name: str) -> bytes | None:
    """The member's bytes, at most MAX_JSON_BYTES, stored or deflated; None without it. Raises
    ProjectError, and GraphError for a missing file."""
    if not path.is_file():
        raise GraphError("no such file", str(path))
    if not zipfile.is_zipfile(path):
        return None
    try:
        with zipfile.ZipFile(path) as archive:
            if name not in archive.namelist():
                return None
            if archive.getinfo(name).compress_type not in COMPRESSIONS:
                raise ValueError("a compression that no reader of these files has")
            with archive.open(name) as member:
                data = member.read(MAX_JSON_BYTES + 1)
    except _DAMAGE as error:
        raise ProjectError(f"a damaged ZIP: {error}", f"{name} in {path.name}") from error
    if len(data) > MAX_JSON_BYTES:
        raise ProjectError(f"more than {MAX_JSON_BYTES} bytes", f"{name} in {path.name}")
    return data
