"""A .tflite file of a few tensors and operators, as TensorFlow's converter would write it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import flatbuffers
import numpy as np

from npumake.frontends.tflite.schema import NAMES, OTHERS, TYPES

NUMBERS = {dtype: number for number, dtype in (TYPES | OTHERS).items()} | {"nothing": 99}
ADD_FIELD = {
    "b": "PrependInt8Slot",
    "i": "PrependInt32Slot",
    "f": "PrependFloat32Slot",
    "?": "PrependBoolSlot",
}


@dataclass(frozen=True)
class Sparsity:
    """The order in which dimensions are walked, which of them blocks lie along, and per level its
    size or, of a compressed one, its segments and indices."""

    order: Sequence[int]
    levels: Sequence[int | tuple[Sequence[int], Sequence[int]]]
    blocked: Sequence[int] = ()


@dataclass(frozen=True)
class T:
    """A tensor: fed or computed, or constant when it has values; codes when it has a scale."""

    shape: Sequence[int] = ()
    dtype: str = "float32"
    values: np.ndarray | None = None
    scale: Sequence[float] = ()
    zero_point: Sequence[int] = ()
    axis: int = 0
    signature: Sequence[int] = ()
    stored: np.ndarray | None = None  # of a sparse tensor: the values that are left
    sparsity: Sparsity | None = None


def constant(values: Any, dtype: str = "float32", **grid: Any) -> T:
    array = np.asarray(values, dtype)
    return T(array.shape, dtype, array, **grid)


@dataclass(frozen=True)
class Op:
    """An operator on tensors by number; options: the union's number, (field, kind, value)…"""

    type: str
    inputs: Sequence[int]
    outputs: Sequence[int]
    union: int = 0
    options: Sequence[tuple[int, str, Any]] = field(default=())
    custom: bytes = b""


def written(
    tensors: Sequence[T], operators: Sequence[Op], inputs: Sequence[int], outputs: Sequence[int]
) -> bytes:
    b = flatbuffers.Builder(1024)
    buffers = [_table(b, 3, {})]
    made = []
    for index, tensor in enumerate(tensors):
        held = 0
        kept = tensor.values if tensor.stored is None else tensor.stored
        if kept is not None:
            held = len(buffers)
            data = np.frombuffer(np.ascontiguousarray(kept).tobytes(), np.uint8)
            b.StartVector(1, len(data), 16)
            b.head -= len(data)
            b.Bytes[b.head : b.head + len(data)] = data.tobytes()
            buffers.append(_table(b, 3, {0: ("offset", b.EndVector())}))
        made.append(_tensor(b, f"t{index}", tensor, held))
    types = list(dict.fromkeys(operator.type for operator in operators))
    codes = [_code(b, name) for name in types]
    steps = [_operator(b, operator, types) for operator in operators]
    graph = {
        0: ("offset", _offsets(b, made)),
        1: ("offset", b.CreateNumpyVector(np.asarray(inputs, np.int32))),
        2: ("offset", b.CreateNumpyVector(np.asarray(outputs, np.int32))),
        3: ("offset", _offsets(b, steps)),
    }
    subgraphs = _offsets(b, [_table(b, 5, graph)])
    model = {
        0: ("i", 3),
        1: ("offset", _offsets(b, codes)),
        2: ("offset", subgraphs),
        4: ("offset", _offsets(b, buffers)),
    }
    b.Finish(_table(b, 8, model), b"TFL3")
    return bytes(b.Output())


def _tensor(b: flatbuffers.Builder, name: str, tensor: T, buffer: int) -> int:
    fields: dict[int, tuple[str, Any]] = {
        0: ("offset", b.CreateNumpyVector(np.asarray(tensor.shape, np.int32))),
        1: ("b", NUMBERS[tensor.dtype]),
        2: ("i", buffer),
        3: ("offset", b.CreateString(name)),
    }
    if tensor.scale:
        zero_point = tensor.zero_point or [0] * len(tensor.scale)
        grid = {
            2: ("offset", b.CreateNumpyVector(np.asarray(tensor.scale, np.float32))),
            3: ("offset", b.CreateNumpyVector(np.asarray(zero_point, np.int64))),
            6: ("i", tensor.axis),
        }
        fields[4] = ("offset", _table(b, 7, grid))
    if tensor.sparsity:
        fields[6] = ("offset", _sparsity(b, tensor.sparsity))
    if tensor.signature:
        fields[7] = ("offset", b.CreateNumpyVector(np.asarray(tensor.signature, np.int32)))
    return _table(b, 8, fields)


def _sparsity(b: flatbuffers.Builder, sparsity: Sparsity) -> int:
    order, blocked = (
        b.CreateNumpyVector(np.asarray(x, np.int32)) for x in (sparsity.order, sparsity.blocked)
    )
    levels = _offsets(b, [_level(b, level) for level in sparsity.levels])
    return _table(b, 3, {0: ("offset", order), 1: ("offset", blocked), 2: ("offset", levels)})


def _level(b: flatbuffers.Builder, level: int | tuple[Sequence[int], Sequence[int]]) -> int:
    """Segments as int32, number 1 of the union of their types; indices as uint8, number 3."""
    if isinstance(level, int):
        return _table(b, 6, {0: ("b", 0), 1: ("i", level)})
    segments = b.CreateNumpyVector(np.asarray(level[0], np.int32))
    indices = b.CreateNumpyVector(np.asarray(level[1], np.uint8))
    listed = [_table(b, 1, {0: ("offset", x)}) for x in (segments, indices)]
    fields: dict[int, tuple[str, Any]] = {
        0: ("b", 1),
        2: ("b", 1),
        3: ("offset", listed[0]),
        4: ("b", 3),
        5: ("offset", listed[1]),
    }
    return _table(b, 6, fields)


def _code(b: flatbuffers.Builder, type: str) -> int:
    name, _, custom = type.partition(" ")
    number = NAMES.index(name)
    version = 2 if name == "BROADCAST_TO" else 1  # the first that TensorFlow Lite knows
    fields: dict[int, tuple[str, Any]] = {
        0: ("b", min(number, 127)),
        2: ("i", version),
        3: ("i", number),
    }
    if custom:
        fields[1] = ("offset", b.CreateString(custom))
    return _table(b, 4, fields)


def _operator(b: flatbuffers.Builder, operator: Op, types: Sequence[str]) -> int:
    fields: dict[int, tuple[str, Any]] = {
        0: ("i", types.index(operator.type)),
        1: ("offset", b.CreateNumpyVector(np.asarray(operator.inputs, np.int32))),
        2: ("offset", b.CreateNumpyVector(np.asarray(operator.outputs, np.int32))),
    }
    if operator.union:
        options = {number: (kind, value) for number, kind, value in operator.options}
        fields[3] = ("b", operator.union)
        fields[4] = ("offset", _table(b, 10, options))
    if operator.custom:
        held = np.frombuffer(operator.custom, np.uint8)
        fields[5] = ("offset", b.CreateNumpyVector(held))
    return _table(b, 6, fields)


def _table(b: flatbuffers.Builder, size: int, fields: dict[int, tuple[str, Any]]) -> int:
    b.StartObject(size)
    for number, (kind, value) in fields.items():
        if kind == "offset":
            b.PrependUOffsetTRelativeSlot(number, value, 0)
        else:
            getattr(b, ADD_FIELD[kind])(number, value, None)
    return b.EndObject()


def _offsets(b: flatbuffers.Builder, offsets: Sequence[int]) -> int:
    b.StartVector(4, len(offsets), 4)
    for offset in reversed(offsets):
        b.PrependUOffsetTRelative(offset)
    return b.EndVector()
