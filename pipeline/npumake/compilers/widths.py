"""Checks the tensor types and grids of a compiled file against the plan.

The plan is the program: int8, int16, or a CPU type by tensor, and the scale and zero point of
codes. A compiler may drop, fuse and rename tensors. A tensor that keeps its name must have the
planned type and grid, or the build fails. An input or output passed as codes has those of its
codes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from npumake.bundle.program import SUMS, Program, Tensor
from npumake.errors import StageError

Types = Mapping[str, str]  # by tensor
Grids = Mapping[str, "FileGrid"]
MAX_NAMES = 5


class FileGrid(NamedTuple):
    """Scale, in float32 as files hold it, and zero point of a tensor of codes."""

    scale: float
    zero_point: int

    def __str__(self) -> str:
        return f"{self.scale:.9g} * (code - {self.zero_point})"


def hold_grids(grids: Grids, program: Program) -> None:
    """`grids` are those of the file. Raises StageError if one differs from the plan."""
    planned = _planned_grids(program)
    wrong = [
        f"`{name}` is {grid}, planned is {' or '.join(map(str, sorted(planned[name])))}"
        for name, grid in sorted(grids.items())
        if planned.get(name) and grid not in planned[name]
    ]
    if wrong:
        suffix = f" and {len(wrong) - MAX_NAMES} more" if len(wrong) > MAX_NAMES else ""
        message = f"the compiled file changes the grid of a tensor: {', '.join(wrong[:MAX_NAMES])}"
        raise StageError(message + suffix, None, "build for another target, with another compiler")


def hold_widths(types: Types, program: Program) -> None:
    """`types` are those of the file. Raises StageError if one differs from the plan."""
    planned = _planned(program)
    wrong = [
        f"`{name}` is {dtype}, planned is {' or '.join(sorted(planned[name]))}"
        for name, dtype in sorted(types.items())
        if name in planned and dtype not in planned[name]
    ]
    if wrong:
        suffix = f" and {len(wrong) - MAX_NAMES} more" if len(wrong) > MAX_NAMES else ""
        message = f"the compiled file changes the type of a tensor: {', '.join(wrong[:MAX_NAMES])}"
        raise StageError(message + suffix, None, "leave these types out of `quantization.types`")


def _planned(program: Program) -> dict[str, set[str]]:
    """The allowed types by tensor: one, or two for an input or output passed as codes."""
    types = {name: {tensor.dtype} for name, tensor in program.tensors.items()}
    for step in program.instructions:
        if step.op == "dequantize" and step.outputs[0] in program.outputs:
            types[step.outputs[0]].add(program.tensors[step.inputs[0]].dtype)
    for name in program.inputs:
        types[name] |= {program.tensors[codes].dtype for codes in _codes_of(program, name)}
    return types


def _planned_grids(program: Program) -> dict[str, set[FileGrid]]:
    """The allowed grids by tensor; none for a tensor that is only float."""
    grids = {name: _grids(tensor) for name, tensor in program.tensors.items()}
    for step in program.instructions:
        if step.op == "dequantize" and step.outputs[0] in program.outputs:
            grids[step.outputs[0]] |= _grids(program.tensors[step.inputs[0]])
    for name in program.inputs:
        for codes in _codes_of(program, name):
            grids[name] |= _grids(program.tensors[codes])
    return grids


def _grids(tensor: Tensor) -> set[FileGrid]:
    if tensor.scale is None or tensor.dtype == SUMS:
        return set()
    return {FileGrid(float(np.float32(tensor.scale)), tensor.zero_point)}


def _codes_of(program: Program, name: str) -> Iterator[str]:
    """The output of the quantizer of an input, perhaps behind a Transpose on the CPU."""
    moved = {name}  # the instructions are in order
    for step in program.instructions:
        if moved.isdisjoint(step.inputs):
            continue
        if step.op == "quantize":
            yield step.outputs[0]
        elif step.op == "onnx" and len(step.inputs) == 1:
            moved.add(step.outputs[0])
