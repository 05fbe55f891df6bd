"""Widths: the types of a compiled file's tensors, held to the plan.

The plan is the program: by tensor int8, int16, or a type of the CPU. A compiler may drop, fuse and
rename tensors; one that it keeps under its name has the type of the plan, or the build fails. An
input that is fed as codes has the type of its codes, and so has an output.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from npumake.bundle.program import Program
from npumake.errors import StageError

Types = Mapping[str, str]  # by tensor
MAX_NAMES = 5


def hold_widths(types: Types, program: Program) -> None:
    """`types` are those of the file. Raises StageError where one is not that of the plan."""
    planned = _planned(program)
    wrong = [
        f"`{name}` is {dtype}, planned is {' or '.join(sorted(planned[name]))}"
        for name, dtype in sorted(types.items())
        if name in planned and dtype not in planned[name]
    ]
    if wrong:
        more = f" and {len(wrong) - MAX_NAMES} more" if len(wrong) > MAX_NAMES else ""
        what = f"the compiled file changes the type of a tensor: {', '.join(wrong[:MAX_NAMES])}"
        raise StageError(what + more, None, "leave these types out of `quantization.types`")


def _planned(program: Program) -> dict[str, set[str]]:
    """By tensor the types it may have: one, but for an input or output that is fed as codes."""
    types = {name: {tensor.dtype} for name, tensor in program.tensors.items()}
    for step in program.instructions:
        if step.op == "dequantize" and step.outputs[0] in program.outputs:
            types[step.outputs[0]].add(program.tensors[step.inputs[0]].dtype)
    for name in program.inputs:
        types[name] |= {program.tensors[codes].dtype for codes in _codes_of(program, name)}
    return types


def _codes_of(program: Program, name: str) -> Iterator[str]:
    """What quantizes the input, perhaps behind a Transpose that is the CPU's."""
    moved = {name}  # the instructions are in order
    for step in program.instructions:
        if moved.isdisjoint(step.inputs):
            continue
        if step.op == "quantize":
            yield step.outputs[0]
        elif step.op == "onnx" and len(step.inputs) == 1:
            moved.add(step.outputs[0])
