"""A program as plain JSON, and the bytes of its constants.

A constant is (offset, dtype, shape), little-endian, in C order, aligned to 64 bytes. Equal
constants are stored once. The ONNX model of a CPU subgraph is a member of its own that the
instruction names; this room does not read it. The document includes the memory plan. `unpacked`
accepts only what `packed` writes, so each program has exactly one form.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

import numpy as np

from npumake import digest
from npumake.bundle.memory import planned
from npumake.bundle.program import Instruction, Program, Tensor
from npumake.digest import Json

T = TypeVar("T")

ALIGNMENT = 64
DTYPES = frozenset({"int8", "uint8", "int16", "uint16", "int32", "int64", "float32", "float64"})
CPU = "cpu/"  # the folder of members that are ONNX


class Packed(NamedTuple):
    """`models` holds the CPU subgraphs by member name, in order."""

    document: Json
    weights: Any  # bytes, or a memoryview without a copy
    models: dict[str, bytes]


def packed(program: Program) -> Packed:
    """The program as members. Raises TypeError for a dtype outside DTYPES."""
    weights, places = bytearray(), dict[tuple[str, str], int]()
    models: dict[str, bytes] = {}

    def place(array: np.ndarray) -> Json:
        if array.dtype.name not in DTYPES:
            raise TypeError(f"a bundle holds no {array.dtype}")
        data = array.astype(array.dtype.newbyteorder("<")).tobytes()
        key = (array.dtype.name, digest.of_bytes(data))
        if key not in places:
            weights.extend(bytes(-len(weights) % ALIGNMENT))
            places[key] = len(weights)
            weights.extend(data)
        return [places[key], array.dtype.name, list(array.shape)]

    def model(data: np.ndarray) -> Json:
        name = f"{CPU}subgraph_{len(models)}.onnx"
        models[name] = data.tobytes()
        return name

    def instruction(step: Instruction) -> Json:
        write = model if step.op == "onnx" else place
        constants = {role: write(step.constants[role]) for role in sorted(step.constants)}
        return {**digest.plain(replace(step, constants={})), "constants": constants}

    document = {
        "inputs": list(program.inputs),
        "outputs": list(program.outputs),
        "tensors": {name: digest.plain(tensor) for name, tensor in program.tensors.items()},
        "instructions": [instruction(step) for step in program.instructions],
        "memory": digest.plain(planned(program)),
    }
    return Packed(document, bytes(weights), models)


def unpacked(members: Packed) -> Program:
    """The inverse of `packed`.

    Raises KeyError, TypeError, ValueError or OverflowError for other members. Constants are
    read-only views of `weights`, so a wrong shape cannot exhaust the memory.
    """
    document = members.document
    program = Program(
        _many(str, document["inputs"]),
        _many(str, document["outputs"]),
        {name: _tensor(tensor) for name, tensor in _a(dict, document["tensors"]).items()},
        tuple(_instruction(step, members) for step in _a(list, document["instructions"])),
    )
    _refuse_loose_ends(program)
    if packed(program) != members:
        raise ValueError("the program is not written as a bundle writes it")
    return program


def _tensor(tensor: Json) -> Tensor:
    dtype, scale = _a(str, tensor["dtype"]), tensor["scale"]
    if np.dtype(dtype).name != dtype:
        raise ValueError(f"no tensor is {dtype}")
    return Tensor(
        _shape(tensor["shape"]),
        dtype,
        None if scale is None else _a(float, scale),
        _a(int, tensor["zero_point"]),
    )


def _instruction(step: Json, members: Packed) -> Instruction:
    op, constants = _a(str, step["op"]), _a(dict, step["constants"])
    if op == "onnx" and set(constants) != {"model"}:
        raise ValueError("a CPU subgraph is one model")
    return Instruction(
        op,
        _a(str, step["name"]),
        _many(str, step["inputs"]),
        _many(str, step["outputs"]),
        {role: _constant(place, op, members) for role, place in constants.items()},
        _a(dict, step["attributes"]),
        _many(str, step["origin"]),
    )


def _constant(place: Json, op: str, members: Packed) -> np.ndarray:
    if op == "onnx":
        return np.frombuffer(members.models[_a(str, place)], np.uint8)
    offset, dtype, sizes = _a(list, place)
    shape = _shape(sizes)
    if dtype not in DTYPES:
        raise ValueError(f"no constant is {dtype}")
    little = np.dtype(dtype).newbyteorder("<")
    content = memoryview(members.weights)[_a(int, offset) :][: math.prod(shape) * little.itemsize]
    # NumPy refuses a shape larger than `content`.
    return np.ndarray(shape, little, content).astype(dtype, copy=False)


def _refuse_loose_ends(program: Program) -> None:
    """Raises ValueError unless each tensor is described, defined once, and defined before use."""
    names = set(program.inputs)
    for step in program.instructions:
        if not names.isdisjoint(step.outputs) or len(set(step.outputs)) < len(step.outputs):
            raise ValueError(f"`{step.name}` redefines an existing tensor")
        if not names.issuperset(step.inputs):
            raise ValueError(f"`{step.name}` reads an undefined tensor")
        names.update(step.outputs)
    if not names.issuperset(program.outputs) or not names <= set(program.tensors):
        raise ValueError("the program outputs or computes an undeclared tensor")


def _shape(sizes: Json) -> tuple[int, ...]:
    shape = _many(int, sizes)
    if any(size < 0 for size in shape):
        raise ValueError(f"no shape is {sizes}")
    return shape


def _a(kind: type[T], value: Json) -> T:
    """The value. Raises TypeError unless its type is exactly `kind`: true is not an int."""
    if type(value) is not kind:
        raise TypeError(f"a {type(value).__name__} where a {kind.__name__} belongs")
    return value


def _many(kind: type[T], values: Json) -> tuple[T, ...]:
    return tuple(_a(kind, value) for value in _a(list, values))
