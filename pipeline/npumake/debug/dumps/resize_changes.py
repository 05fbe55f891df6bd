"""Changes of a Resize: where it reads, and how it rounds or interpolates."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from npumake.bundle.program import Instruction, Program
from npumake.debug.dumps.window_changes import Change

TRANSFORMS = ("half pixels", "asymmetric", "aligned corners")
NEAREST = tuple(
    f"{transform}, {rule}"
    for transform in TRANSFORMS
    for rule in ("rounded down", "rounded", "rounded up")
)


def nearest(step: Instruction, program: Program) -> Iterator[Change]:
    """The other rules by which a Resize takes the nearest element."""
    axes = step.attributes.get("axes")
    if step.op != "resize_nearest" or not axes:
        return
    shape = program.tensors[step.inputs[0]].shape
    for words in NEAREST:
        indices = {}
        for axis in axes:
            role = f"index_{axis}"
            indices[role] = _indices(words, shape[axis], len(step.constants[role]))
        changed = replace(step, constants={**step.constants, **indices})
        yield "resize", f"takes the nearest elements by another rule, {words}", changed, {}


def _indices(words: str, input_size: int, count: int) -> np.ndarray:
    transform, _, rule = words.partition(", ")
    places = _places(transform, input_size, count)
    if rule == "rounded up":
        rounded = np.ceil(places)
    else:
        rounded = np.floor(places + (0.5 if rule == "rounded" else 0.0))
    return np.clip(rounded, 0, input_size - 1).astype(np.int64)


def _places(transform: str, input_size: int, count: int) -> np.ndarray:
    """The coordinates of the input for each element of the output."""
    own = np.arange(count)
    if transform == "half pixels":
        return np.asarray((own + 0.5) * input_size / count - 0.5)
    if transform == "aligned corners":
        return np.asarray(own * (input_size - 1) / max(count - 1, 1))
    return np.asarray(own * input_size / count)


def linear(step: Instruction, program: Program) -> Iterator[Change]:
    """The other rules by which a Resize interpolates."""
    if step.op not in ("resize_linear", "resize_twice"):
        return
    for transform in TRANSFORMS:
        taps: dict[str, np.ndarray] = {}
        for axis in range(len(program.tensors[step.outputs[0]].shape)):
            if f"low_{axis}" in step.constants:
                taps |= _taps(step, program, axis, transform)
        words = f"interpolates by another rule, {transform}"
        yield "resize", words, replace(step, constants={**step.constants, **taps}), {}


def _taps(step: Instruction, program: Program, axis: int, transform: str) -> dict[str, np.ndarray]:
    """The constants of an axis."""
    size, count = (program.tensors[n].shape[axis] for n in (step.inputs[0], step.outputs[0]))
    weight = step.constants[f"weight_{axis}"]
    unit = 1 << max(int(weight.max(initial=0)), 1).bit_length()  # the weight of a whole pixel
    places = np.clip(_places(transform, size, count), 0, size - 1)
    low = np.floor(places).astype(np.int64)
    return {
        f"low_{axis}": low,
        f"high_{axis}": np.minimum(low + 1, size - 1),
        f"weight_{axis}": np.rint((places - low) * unit).astype(weight.dtype),
    }
