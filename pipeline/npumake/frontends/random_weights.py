"""Random weights in the place of trained ones, in the file's own format.

Everything else of the file stays as it is, names included, so that the reader meets the same file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from npumake.errors import GraphError
from npumake.frontends import suffix_of
from npumake.frontends.tflite.flatbuffer import NO_TABLE, FlatTable, MalformedError, view
from npumake.frontends.tflite.schema import IDENTIFIER, OTHERS, TYPES
from npumake.graph import Beside
from npumake.graph.random_weights import RandomizedModel
from npumake.graph.random_weights import with_random_weights as of_onnx
from npumake.graph.wire import fields
from npumake.kernels.random_like import random_like

SIZED = 2  # wire type of protobuf
# Of a .caffemodel: routes of field numbers from the file to a blob (messages.py).
BLOBS = ((100, 7), (2, 6), (2, 1, 50))
BLOB_VALUES = {5: "<f4", 8: "<f8"}  # packed


def with_random_weights(
    data: bytes, name: str, beside: Sequence[Beside], seed: int
) -> RandomizedModel:
    """The model file called `name` and the weight files beside it. Raises GraphError for a format
    whose weights cannot be replaced."""
    suffix = suffix_of(name)
    if suffix not in RANDOMIZED:
        hint = f"weights can be replaced in {', '.join(RANDOMIZED)}"
        raise GraphError(f"the weights of a `{suffix}` file cannot be replaced", name, hint)
    try:
        return RANDOMIZED[suffix](data, beside, np.random.default_rng(seed))
    except (MalformedError, IndexError, ValueError) as error:
        raise GraphError(f"its weights cannot be replaced: {error}", name) from error
    except GraphError as error:
        error.where = error.where or name
        raise


def _of_tflite(data: bytes, beside: Sequence[Beside], rng: np.random.Generator) -> RandomizedModel:
    """Of float tensors, and of those with a grid, in every subgraph."""
    if data[4:8] != IDENTIFIER:
        raise MalformedError(f"it lacks the identifier {IDENTIFIER.decode()}")
    changed = bytearray(data)
    spans = dict(_tflite_weights(data))
    for (start, size), kind in spans.items():
        values = np.frombuffer(data, kind, size // np.dtype(kind).itemsize, start)
        changed[start : start + size] = random_like(values, rng).tobytes()
    return RandomizedModel(bytes(changed), {}, len(spans))


def _tflite_weights(data: bytes) -> Iterator[tuple[tuple[int, int], str]]:
    """((start, bytes), type) of the content of each tensor that is a weight."""
    model = FlatTable.root(data)
    buffers = model.tables(4)
    for graph in model.tables(2):
        for tensor in graph.tables(0):
            number, index = tensor.scalar(1, "b", 0), tensor.scalar(2, "I", 0)
            if not 0 < index < len(buffers):
                continue
            content = buffers[index].numbers(0, "u1")
            if not content.size and (offset := buffers[index].scalar(1, "Q", 0)) > 1:
                content = view(data, offset, buffers[index].scalar(2, "Q", 0), "u1")
            if not content.size or number in OTHERS:
                continue
            if number not in TYPES:
                raise MalformedError(f"tensor `{tensor.text(3)}` is of type {number}")
            is_quantized = (
                tensor.table(4) is not NO_TABLE and tensor.table(4).numbers(2, "<f4").size
            )
            kind = np.dtype(TYPES[number]).newbyteorder("<")
            if kind.kind == "f" or is_quantized:
                start = content.ctypes.data - np.frombuffer(data, "u1").ctypes.data
                yield (start, content.size), kind.str


def _of_caffe(data: bytes, beside: Sequence[Beside], rng: np.random.Generator) -> RandomizedModel:
    """Of every blob in the .caffemodel files beside a .prototxt, which has none itself."""
    files: dict[str, bytes] = {}
    replaced = 0
    for file in beside:
        content = file.part(0, file.size)
        changed = bytearray(content)
        for route in BLOBS:
            for start, end in _messages(content, route, 0, len(content)):
                replaced += _replace_blob(content, changed, (start, end), rng)
        files[file.name] = bytes(changed)
    return RandomizedModel(data, files, replaced)


def _messages(data: bytes, route: Sequence[int], start: int, end: int) -> Iterator[tuple[int, int]]:
    if not route:
        yield start, end
        return
    for tag, at, stop in fields(data, start, end):
        if tag == route[0] << 3 | SIZED:
            yield from _messages(data, route[1:], at, stop)


def _replace_blob(
    data: bytes, changed: bytearray, blob: tuple[int, int], rng: np.random.Generator
) -> int:
    """Replaces the values of a blob, in one field or in many; returns 1 if it has any."""
    spans: dict[int, list[tuple[int, int]]] = {}
    for tag, at, stop in fields(data, *blob):
        if tag >> 3 in BLOB_VALUES:
            spans.setdefault(tag >> 3, []).append((at, stop))
    for number, parts in spans.items():
        values = np.frombuffer(b"".join(data[a:b] for a, b in parts), BLOB_VALUES[number])
        random = random_like(values, rng).tobytes()
        for start, stop in parts:
            changed[start:stop], random = random[: stop - start], random[stop - start :]
    return int(bool(spans))


RANDOMIZED: Mapping[
    str, Callable[[bytes, Sequence[Beside], np.random.Generator], RandomizedModel]
] = {".onnx": of_onnx, ".prototxt": _of_caffe, ".tflite": _of_tflite}
