"""Windows over one axis as windows over an image of one row.

x (N, C, L)    Reshape -> (N, C, 1, L)    Conv 1 x k    Reshape -> (N, O, M)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from npumake.bundle.program import Instruction, Program, Tensor
from npumake.digest import Json

SLIDING = frozenset({"average_twice", "conv", "conv_transpose", "max_pool"})


def lifted(program: Program) -> Program:
    """The program with every one-dimensional window as a two-dimensional one."""
    tensors = dict(program.tensors)
    steps: list[Instruction] = []
    for step in program.instructions:
        is_flat = step.op in SLIDING and len(tensors[step.inputs[0]].shape) == 3
        steps += _over_an_image(step, tensors) if is_flat else [step]
    return replace(program, tensors=tensors, instructions=tuple(steps))


def _over_an_image(step: Instruction, tensors: dict[str, Tensor]) -> Iterator[Instruction]:
    """Reshape, the step, Reshape; adds the tensors in between to `tensors`."""
    (source,), (output,) = step.inputs, step.outputs
    before, after = f"{output}_row", f"{output}_of_row"
    for name, flat in ((before, source), (after, output)):
        samples, channels, length = tensors[flat].shape
        tensors[name] = replace(tensors[flat], shape=(samples, channels, 1, length))
    constants = dict(step.constants)
    if "weight" in constants:
        constants["weight"] = constants["weight"][:, :, None]
    attributes = {name: _two(name, value) for name, value in step.attributes.items()}
    yield Instruction("reshape", step.name, (source,), (before,))
    yield replace(
        step, inputs=(before,), outputs=(after,), constants=constants, attributes=attributes
    )
    yield Instruction("reshape", step.name, (after,), (output,))


def _two(name: str, value: Json) -> Json:
    if name in ("dilations", "kernel", "strides"):
        assert isinstance(value, list)
        return [1, *value]
    if name == "pads":
        assert isinstance(value, list)
        return [0, value[0], 0, value[1]]
    return value
