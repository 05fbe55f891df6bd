"""Writes a .tflite file from plain values. Field numbers are those of TensorFlow's schema.fbs.

The same network gives the same bytes: tables keep their order, and there are no dates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import flatbuffers
import numpy as np

from npumake.frontends.tflite.schema import IDENTIFIER, NAMES, TYPES

NUMBERS = {dtype: number for number, dtype in TYPES.items()}
ALIGNMENT = 16  # of a buffer's content
SLOTS = {
    "b": "PrependInt8Slot",
    "i": "PrependInt32Slot",
    "f": "PrependFloat32Slot",
    "?": "PrependBoolSlot",
    "offset": "PrependUOffsetTRelativeSlot",
}
Fields = Mapping[int, tuple[str, Any]]  # by field number: the kind in SLOTS, and the value


@dataclass(frozen=True, eq=False)
class FileTensor:
    """Constant if it has values; quantized if it has a scale: one, or one per index of
    `axis`."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    values: np.ndarray | None = None
    scale: Sequence[float] | np.ndarray = ()
    zero_point: int = 0
    axis: int = 0


@dataclass(frozen=True)
class FileOperator:
    """`inputs` and `outputs` are tensor indices, -1 for an omitted one; `union` is that of the
    options."""

    type: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    version: int = 1
    union: int = 0
    options: Fields = field(default_factory=dict)
    node: str = ""  # the graph node that it computes; not in the file


class FlatModel(NamedTuple):
    """One graph, as arguments of `written`."""

    tensors: Sequence[FileTensor]
    operators: Sequence[FileOperator]
    inputs: Sequence[int]
    outputs: Sequence[int]


def written(
    tensors: Sequence[FileTensor],
    operators: Sequence[FileOperator],
    inputs: Sequence[int],
    outputs: Sequence[int],
) -> bytes:
    """The bytes of a file with one graph."""
    b = flatbuffers.Builder(1024)
    buffers = [_table(b, {})]
    table_offsets = []
    for tensor in tensors:
        buffer = 0
        if tensor.values is not None:
            buffer = len(buffers)
            buffers.append(_table(b, {0: ("offset", _content(b, tensor.values))}))
        table_offsets.append(_tensor(b, tensor, buffer))
    codes = sorted({(operator.type, operator.version) for operator in operators})
    steps = [_operator(b, operator, codes) for operator in operators]
    graph: Fields = {
        0: ("offset", _offsets(b, table_offsets)),
        1: ("offset", _numbers(b, inputs, np.int32)),
        2: ("offset", _numbers(b, outputs, np.int32)),
        3: ("offset", _offsets(b, steps)),
        4: ("offset", b.CreateString("main")),
    }
    model: Fields = {
        0: ("i", 3),
        1: ("offset", _offsets(b, [_code(b, *code) for code in codes])),
        2: ("offset", _offsets(b, [_table(b, graph)])),
        3: ("offset", b.CreateString("npumake")),
        4: ("offset", _offsets(b, buffers)),
    }
    b.Finish(_table(b, model), IDENTIFIER)
    return bytes(b.Output())


def _content(b: flatbuffers.Builder, values: np.ndarray) -> int:
    data = values.astype(values.dtype.newbyteorder("<")).tobytes()
    b.StartVector(1, len(data), ALIGNMENT)
    b.head -= len(data)
    b.Bytes[b.head : b.head + len(data)] = data
    return int(b.EndVector())


def _tensor(b: flatbuffers.Builder, tensor: FileTensor, buffer: int) -> int:
    fields: dict[int, tuple[str, Any]] = {
        0: ("offset", _numbers(b, tensor.shape, np.int32)),
        1: ("b", NUMBERS[tensor.dtype]),
        2: ("i", buffer),
        3: ("offset", b.CreateString(tensor.name)),
    }
    if len(tensor.scale):
        zero_points = [tensor.zero_point] * len(tensor.scale)
        grid: Fields = {
            2: ("offset", _numbers(b, tensor.scale, np.float32)),
            3: ("offset", _numbers(b, zero_points, np.int64)),
            6: ("i", tensor.axis),
        }
        fields[4] = ("offset", _table(b, grid))
    if not tensor.shape:
        fields[8] = ("?", True)  # rank 0 is known; an absent shape alone would mean unknown
    return _table(b, fields)


def _code(b: flatbuffers.Builder, name: str, version: int) -> int:
    number = NAMES.index(name)
    # Numbers beyond a byte have a field of their own; old readers see the largest byte.
    return _table(b, {0: ("b", min(number, 127)), 2: ("i", version), 3: ("i", number)})


def _operator(
    b: flatbuffers.Builder, operator: FileOperator, codes: Sequence[tuple[str, int]]
) -> int:
    fields: dict[int, tuple[str, Any]] = {
        0: ("i", codes.index((operator.type, operator.version))),
        1: ("offset", _numbers(b, operator.inputs, np.int32)),
        2: ("offset", _numbers(b, operator.outputs, np.int32)),
    }
    if operator.union:
        fields[3] = ("b", operator.union)
        fields[4] = ("offset", _table(b, operator.options))
    return _table(b, fields)


def _table(b: flatbuffers.Builder, fields: Fields) -> int:
    b.StartObject(max(fields, default=-1) + 1)
    for number, (kind, value) in fields.items():
        absent = (
            0 if kind == "offset" else None
        )  # offsets are always written, others only if not the default
        getattr(b, SLOTS[kind])(number, value, absent)
    return int(b.EndObject())


def _numbers(b: flatbuffers.Builder, values: Any, dtype: Any) -> int:
    return int(b.CreateNumpyVector(np.asarray(values, dtype)))


def _offsets(b: flatbuffers.Builder, offsets: Sequence[int]) -> int:
    b.StartVector(4, len(offsets), 4)
    for offset in reversed(offsets):
        b.PrependUOffsetTRelative(offset)
    return int(b.EndVector())
