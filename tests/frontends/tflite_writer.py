"""A .tflite file of a few tensors and operators, as TensorFlow's converter would write it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import flatbuffers
import numpy as np

from pipeline.frontends.tflite.schema import NAMES, TYPES

NUMBERS = {dtype: number for number, dtype in TYPES.items()}
ADD_FIELD = {
    "b": "PrependInt8Slot",
    "i": "PrependInt32Slot",
    "f": "PrependFloat32Slot",
    "?": "PrependBoolSlot",
}


@dataclass(frozen=True)
class T:
    """A tensor: fed or computed, or constant when it has values; codes when it has a scale."""

    shape: Sequence[int] = ()
    dtype: str = "float32"
    values: np.ndarray | None = None
    scale: Sequence[float] = ()
    zero_point: Sequence[int] = ()
    axis: int = 0


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


def written(
    tensors: Sequence[T], operators: Sequence[Op], inputs: Sequence[int], outputs: Sequence[int]
) -> bytes:
    b = flatbuffers.Builder(1024)
    buffers = [_table(b, 3, {})]
    made = []
    for index, tensor in enumerate(tensors):
        held = 0
        if tensor.values is not None:
            held = len(buffers)
            data = np.frombuffer(np.ascontiguousarray(tensor.values).tobytes(), np.uint8)
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
    return _table(b, 8, fields)


def _code(b: flatbuffers.Builder, type: str) -> int:
    name, _, custom = type.partition(" ")
    number = NAMES.index(name)
    fields: dict[int, tuple[str, Any]] = {0: ("b", min(number, 127)), 2: ("i", 1), 3: ("i", number)}
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
