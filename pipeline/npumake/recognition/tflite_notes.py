"""The metadata of a .tflite file: normalization of the picture, colors, and class names.

Source: metadata_schema.fbs of TensorFlow Lite's support library. Numbers of fields are those of the
schema. Label files are members of a ZIP behind the model.
"""

from __future__ import annotations

import ast
import io
import json
import zipfile
import zlib
from typing import NamedTuple

from npumake.frontends.tflite.flatbuffer import FlatTable, MalformedError

NAME = "TFLITE_METADATA"
NORMALIZATION, LABELS, GRAYSCALE = 1, 2, 2  # numbers of a union and of two enumerations
MAX_LABEL_BYTES = 1 << 20
# Members of Ultralytics and of YOLOv5, the newest name first.
EXPORTED = ("metadata.json", "temp_meta.txt", "meta.txt")
_DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, ValueError)


class TFLiteNotes(NamedTuple):
    """mean and std of raw pixels, (), or one number or one per channel; class names by index."""

    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    is_gray: bool = False
    labels: tuple[str, ...] = ()


NO_NOTES = TFLiteNotes()


def tflite_notes(data: bytes) -> TFLiteNotes:
    """The notes in the file; NO_NOTES without metadata, or with damaged metadata."""
    try:
        document = _document(data)
        if document is None:
            return NO_NOTES
        (graph,) = FlatTable.root(document).tables(3)[:1] or (None,)
        return NO_NOTES if graph is None else _notes(graph, data)
    except (MalformedError, RecursionError):
        return NO_NOTES


def _document(data: bytes) -> bytes | None:
    model = FlatTable.root(data)
    buffers = model.tables(4)
    for entry in model.tables(6):
        index = entry.scalar(1, "I", 0)
        if entry.text(0) == NAME and index < len(buffers):
            return bytes(buffers[index].numbers(0, "u1"))
    return None


def _notes(graph: FlatTable, data: bytes) -> TFLiteNotes:
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    is_gray = False
    for tensor in graph.tables(2)[:1]:
        for unit in tensor.tables(4):
            if unit.scalar(0, "B", 0) == NORMALIZATION:
                mean, std = (
                    tuple(unit.table(1).numbers(field, "<f4").tolist()) for field in (0, 1)
                )
        is_gray = tensor.table(3).table(1).scalar(0, "b", 0) == GRAYSCALE
    files = [file for tensor in graph.tables(3) for file in tensor.tables(6)]
    names = [file.text(0) for file in files if file.scalar(2, "b", 0) == LABELS]
    return TFLiteNotes(mean, std, is_gray, _labels(data, names[0]) if names else ())


def _labels(data: bytes, name: str) -> tuple[str, ...]:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive, archive.open(name) as member:
            text = member.read(MAX_LABEL_BYTES).decode("utf-8", "replace")
    except (*_DAMAGE, KeyError):
        return ()
    return tuple(line.strip() for line in text.splitlines() if line.strip())


def exported_notes(data: bytes) -> dict[str, str]:
    """The metadata in the ZIP behind an exported .tflite, as `notes` of an ONNX file; {} without.

    Ultralytics and YOLOv5 write JSON, or a dict as Python prints it.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            present = {*archive.namelist()}
            name = next((name for name in EXPORTED if name in present), None)
            if name is None:
                return {}
            with archive.open(name) as member:
                return _printed_notes(member.read(MAX_LABEL_BYTES))
    except (*_DAMAGE, KeyError):
        return {}


def _printed_notes(data: bytes) -> dict[str, str]:
    text = data.decode("utf-8", "replace")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        try:
            value = ast.literal_eval(text)  # literals only: nothing runs
        except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
            return {}
    if not isinstance(value, dict):
        return {}
    return {str(key): str(_numbered(item)) for key, item in value.items()}


def _numbered(item: object) -> object:
    """JSON has no numbers as keys: class names by index have their digits."""
    if not isinstance(item, dict) or not all(str(key).isdecimal() for key in item):
        return item
    return {int(key): value for key, value in item.items()}
