"""Scans a serialized ONNX file without its weights; searching those takes longer than running many
a model.

A message is a list of fields, each a tag (number and wire type) and content. Content that differs
from ONNX's encoding is kept, since it could hide a node.
"""

from __future__ import annotations

from collections.abc import Iterator

_VARINT, _SIZED = 0, 2  # kinds
_FIXED = {1: 8, 5: 4}  # bytes
_GRAPH, _INITIALIZER = (
    7 << 3 | _SIZED,
    5 << 3 | _SIZED,
)  # tags of ModelProto.graph and GraphProto.initializer


def bytes_without_weights(model: bytes) -> bytes:
    """The concatenated field contents without the graph's initializers; all bytes of a truncated or
    unusual file."""
    try:
        return b"".join(model[start:stop] for start, stop in _but_initializers(model))
    except (IndexError, ValueError):
        return model


def _but_initializers(model: bytes) -> Iterator[tuple[int, int]]:
    for tag, start, stop in fields(model, 0, len(model)):
        if tag != _GRAPH:
            yield start, stop
            continue
        for inner, at, end in fields(model, start, stop):
            if inner != _INITIALIZER:
                yield at, end


def fields(data: bytes, at: int, end: int) -> Iterator[tuple[int, int, int]]:
    """(tag, start, end) of each field of a message. Raises IndexError, ValueError."""
    while at < end:
        tag, at = _varint(data, at)
        kind = tag & 7
        if kind == _SIZED:
            size, at = _varint(data, at)
        elif kind == _VARINT:
            size = _varint(data, at)[1] - at
        elif kind in _FIXED:
            size = _FIXED[kind]
        else:
            raise ValueError(f"a field of kind {kind}")
        if at + size > end:
            raise IndexError(f"a field ends at {at + size}, its message at {end}")
        yield tag, at, at + size
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """(value, next position): seven bits per byte, lowest first, while the eighth is set."""
    number = shift = 0
    while True:
        byte = data[at]
        at, number, shift = at + 1, number | (byte & 127) << shift, shift + 7
        if byte < 128:
            return number, at
