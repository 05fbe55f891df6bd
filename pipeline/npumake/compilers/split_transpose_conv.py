"""Grouped or dilated ConvTranspose for TensorFlow Lite, which has neither.

groups      Slice the channels, one ConvTranspose per group, Concat
dilation d  a kernel of (k - 1) d + 1 with zeros between its taps

w'[c, o, d t] = w[c, o, t], else 0
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from npumake.bundle.program import Instruction, Program, Tensor


def parted(program: Program) -> Program:
    """The program with every ConvTranspose in one group and without dilation."""
    tensors = dict(program.tensors)
    steps: list[Instruction] = []
    for step in program.instructions:
        is_transpose = step.op == "conv_transpose"
        steps += _in_groups(_undilated(step), tensors) if is_transpose else [step]
    return replace(program, tensors=tensors, instructions=tuple(steps))


def spread(weight: np.ndarray, dilations: Sequence[int]) -> np.ndarray:
    """(I, O, *kernel) -> (I, O, *(dilation * (kernel - 1) + 1))"""
    kernel = weight.shape[2:]
    wide = [d * (k - 1) + 1 for d, k in zip(dilations, kernel, strict=True)]
    dilated = np.zeros((*weight.shape[:2], *wide), weight.dtype)
    taps: Any = (..., *(slice(None, None, d) for d in dilations))
    dilated[taps] = weight
    return dilated


def _undilated(step: Instruction) -> Instruction:
    dilations = step.attributes["dilations"]
    weight = spread(step.constants["weight"], dilations)
    attributes = {**step.attributes, "dilations": [1] * len(dilations)}
    return replace(step, constants={**step.constants, "weight": weight}, attributes=attributes)


def _in_groups(step: Instruction, tensors: dict[str, Tensor]) -> Iterator[Instruction]:
    """Slices, ConvTransposes, Concat; adds the tensors in between to `tensors`."""
    groups = step.attributes["group"]
    if groups == 1:
        yield step
        return
    (source,), (output,) = step.inputs, step.outputs
    parts = [
        _part(step, number, tensors[source], tensors[output], tensors) for number in range(groups)
    ]
    for cut, convolved in parts:
        yield cut
        yield convolved
    outputs = tuple(convolved.outputs[0] for _, convolved in parts)
    yield Instruction("concat", step.name, outputs, (output,), {}, {"axis": 1})


def _part(
    step: Instruction, number: int, before: Tensor, after: Tensor, tensors: dict[str, Tensor]
) -> tuple[Instruction, Instruction]:
    """The slice of a group's channels, and its ConvTranspose."""
    groups, output = step.attributes["group"], step.outputs[0]
    depth, height = before.shape[1] // groups, after.shape[1] // groups
    names = f"{output}_read_{number}", f"{output}_part_{number}"
    for name, whole, channels in zip(names, (before, after), (depth, height), strict=True):
        tensors[name] = replace(whole, shape=(whole.shape[0], channels, *whole.shape[2:]))
    inside = slice(number * depth, (number + 1) * depth)
    constants = {**step.constants, "weight": step.constants["weight"][inside]}
    if constants.get("bias", np.zeros(1)).size > 1:
        constants["bias"] = constants["bias"][number * height : (number + 1) * height]
    cut = [1, inside.start, inside.stop, 1]
    return (
        Instruction("slice", names[0], step.inputs, (names[0],), {}, {"spans": [cut]}),
        replace(
            step,
            inputs=(names[0],),
            outputs=(names[1],),
            constants=constants,
            attributes={**step.attributes, "group": 1},
        ),
    )
