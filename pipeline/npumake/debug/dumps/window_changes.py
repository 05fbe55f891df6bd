"""Changes of windows: their pads, strides and dilations, and what a pool or a Resize takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from npumake.bundle.program import Instruction, Program
from npumake.digest import Json

CONVOLUTIONS = frozenset({"conv"})
Change = tuple[str, str, Instruction | Program, dict[str, Json]]


def replaced(
    program: Program, step: Instruction, others: Sequence[Instruction]
) -> tuple[Instruction, ...]:
    """The instructions with others in the step's place."""
    at = next(at for at, instruction in enumerate(program.instructions) if instruction is step)
    return (*program.instructions[:at], *others, *program.instructions[at + 1 :])


def padded(step: Instruction, program: Program) -> Iterator[Change]:
    """Pads with the code 0 instead of the zero point."""
    pads = step.attributes.get("pads")
    if step.op not in CONVOLUTIONS or not pads or not any(pads):
        return
    name = step.inputs[0]
    grid, half = program.tensors[name], len(pads) // 2
    if not grid.zero_point:
        return
    around = [[0, 0], [0, 0], *([pads[at], pads[half + at]] for at in range(half))]
    limits, inner = np.iinfo(grid.dtype), f"{name} with pads"
    attributes: dict[str, Json] = {"around": around, "mode": "constant", "fill": 0}
    attributes |= {"low": int(limits.min), "high": int(limits.max), "rounding": "half_even"}
    identity = {"mantissa": np.array(1 << 30), "shift": np.array(30)}
    pad = Instruction("pad", inner, (name,), (inner,), identity, attributes)
    bare = replace(
        step,
        inputs=(inner, *step.inputs[1:]),
        attributes={**step.attributes, "pads": [0] * len(pads)},
    )
    shape = tuple(n + sum(ends) for n, ends in zip(grid.shape, around, strict=True))
    tensors = {**program.tensors, inner: replace(grid, shape=shape)}
    words = f"pads with the code 0, not with the zero point {grid.zero_point}"
    steps = replaced(program, step, (pad, bare))
    other = replace(program, instructions=steps, tensors=tensors)
    yield "padding", words, other, {"fill": 0, "zero_point": grid.zero_point}


def windows(step: Instruction, program: Program) -> Iterator[Change]:
    """The same window a pixel away, with pads on the other side, or without its dilation."""
    pads = step.attributes.get("pads")
    if not pads:
        return
    half = len(pads) // 2
    begin, end = pads[:half], pads[half:]
    moved = [[*end, *begin]] if begin != end else []
    for by in (1, -1):
        moved += [[*(p - by for p in begin), *(p + by for p in end)]]
        for at in range(half) if half > 1 else ():
            other_step = list(pads)
            other_step[at], other_step[half + at] = other_step[at] - by, other_step[half + at] + by
            moved.append(other_step)
    for other in moved:
        if min(other) >= 0:
            changed = replace(step, attributes={**step.attributes, "pads": other})
            yield "padding", f"has the pads {other}, not {pads}", changed, {"pads": other}
    yield from _undilated(step)


def whole_window(step: Instruction, program: Program) -> Iterator[Change]:
    """An average that counts the pads."""
    if step.op not in ("average_pool", "average_twice") or not any(step.attributes["pads"]):
        return
    words = "divides the borders by the whole window, not by what lies inside"
    if "count" in step.constants:
        count = step.constants["count"]
        other = {"count": np.full_like(count, count.max())}
    else:
        mantissa, shift = step.constants["mantissa"], step.constants["shift"]
        factor = mantissa * 2.0 ** -shift.astype(np.float64)
        at = np.unravel_index(int(factor.argmin()), factor.shape)
        other = {"mantissa": np.full_like(mantissa, mantissa[at])}
        other["shift"] = np.full_like(shift, shift[at] if shift.ndim else shift)
    yield "padding", words, replace(step, constants={**step.constants, **other}), {}


def _undilated(step: Instruction) -> Iterator[Change]:
    dilations, kernel = step.attributes.get("dilations"), step.attributes.get("kernel")
    pads = step.attributes["pads"]
    if not dilations or not kernel or max(dilations) == 1:
        return
    cut = [(d - 1) * (k - 1) for d, k in zip(dilations, kernel, strict=True)]
    half = len(cut)
    other = [
        *(pads[at] - cut[at] // 2 for at in range(half)),
        *(pads[half + at] - (cut[at] - cut[at] // 2) for at in range(half)),
    ]
    if min(other) >= 0:
        attributes = {**step.attributes, "pads": other, "dilations": [1] * half}
        words = f"has no dilation where ours has {dilations}"
        yield "dilation", words, replace(step, attributes=attributes), {"dilations": [1] * half}


def average_or_maximum(step: Instruction, program: Program) -> Iterator[Change]:
    """A maximum for an average."""
    if step.op not in ("average_pool", "average_twice"):
        return
    input_size, own = (program.tensors[name] for name in (step.inputs[0], step.outputs[0]))
    if input_size.dtype != own.dtype or (input_size.scale, input_size.zero_point) != (
        own.scale,
        own.zero_point,
    ):
        return
    identity = {"mantissa": np.array(1 << 30), "shift": np.array(30)}
    attributes = {**step.attributes, "rounding": "half_even"}
    largest = replace(step, op="max_pool", constants=identity, attributes=attributes)
    yield "pooling", "takes the maximum, not the average", largest, {}
