"""An ONNX file on the wire, walked past its weights: who looks for a word in a file need not search
them, which takes longer than many a model runs.

A message is fields: each a tag, which is its number and its kind, and what it holds. What is not as
ONNX writes it is not walked past: it could hold a node where here a weight seems to be.
"""

from __future__ import annotations

from collections.abc import Iterator

_VARINT, _SIZED = 0, 2  # kinds
_FIXED = {1: 8, 5: 4}  # bytes
_GRAPH, _INITIALIZER = 7 << 3 | _SIZED, 5 << 3 | _SIZED  # tags, of a model and of a graph


def bytes_without_weights(model: bytes) -> bytes:
    """What the fields hold, one behind the other, without the initializers of the graph; all of it
    where the file is torn or strange."""
    try:
        return b"".join(model[start:stop] for start, stop in _but_initializers(model))
    except (IndexError, ValueError):
        return model


def _but_initializers(model: bytes) -> Iterator[tuple[int, int]]:
    for tag, start, stop in _fields(model, 0, len(model)):
        if tag != _GRAPH:
            yield start, stop
            continue
        for inner, at, end in _fields(model, start, stop):
            if inner != _INITIALIZER:
                yield at, end


def _fields(data: bytes, at: int, end: int) -> Iterator[tuple[int, int, int]]:
    """The tag of each, and where what it holds starts and stops. Raises IndexError, ValueError."""
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
            raise IndexError(f"a field ends at {at + size}, what holds it at {end}")
        yield tag, at, at + size
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Seven bits a byte, the lowest first, as long as the eighth is set; and what lies behind."""
    number = shift = 0
    while True:
        byte = data[at]
        at, number, shift = at + 1, number | (byte & 127) << shift, shift + 7
        if byte < 128:
            return number, at
