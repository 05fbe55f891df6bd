"""What holds for a whole dump: where its images have their channels, and the sign of its codes.

The tensors that agree with ours in one way alone are counted. One that then agrees in another way
only was written otherwise than the rest: that is a divergence, though a reading of it exists.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

import numpy as np

from pipeline.bundle.program import Instruction, Program
from pipeline.debug.dumps.difference import BOUND, difference
from pipeline.debug.dumps.reading import CODES, LAST, SHIFTED, Reading

RANK = 4  # of an image
WINDOWS = frozenset(
    {"conv", "conv_transpose", "max_pool", "average_pool", "average_twice"}
    | {"resize_nearest", "resize_linear", "resize_twice"}
)
MIXING = frozenset({"reshape", "transpose", "slice", "pad", "gather", "onnx"})  # of the axes
ENTRY = frozenset({"quantize", "transpose", "reshape", "onnx"})


@dataclass(frozen=True)
class Conventions:
    """`last`: images are channels last. `shifted`: codes are kept with the other sign. None where
    nothing tells. At the borders of the model each tensor may have its own."""

    last: bool | None = None
    shifted: bool | None = None
    images: frozenset[str] = field(default_factory=frozenset)
    borders: frozenset[str] = field(default_factory=frozenset)
    ambiguous: frozenset[str] = field(default_factory=frozenset)  # may be read with either sign

    def holds(self, name: str, reading: Reading) -> bool:
        if name in self.borders:
            return True
        is_last = reading.order == LAST[RANK]
        if self.last is not None and name in self.images and is_last != self.last:
            return False
        known = self.shifted is not None and name in self.ambiguous
        return not known or (reading.form == SHIFTED) == self.shifted

    def sorted(self, name: str, ways: Sequence[Reading]) -> list[Reading]:
        """Those first that are as the rest of the dump is."""
        return sorted(ways, key=lambda way: not self.holds(name, way))


def conventions(
    program: Program,
    ours: Mapping[str, np.ndarray],
    dump: Mapping[str, Sequence[Reading]],
    strict: bool,
) -> Conventions:
    """`strict` is whether the outputs of the model lie as its inner tensors do."""
    known, borders = _images(program), _borders(program, strict)
    votes = {"last": 0, "shifted": 0}
    ambiguous = set()
    for name, ways in dump.items():
        values, grid = ours[name].astype(np.float64), program.tensors[name]
        agreed = [way for way in ways if difference(values, way.codes, grid).within(BOUND)]
        orders = {way.order for way in agreed}
        if {CODES, SHIFTED} <= {way.form for way in ways}:
            ambiguous.add(name)
            votes["shifted"] += _vote({way.form for way in agreed}, SHIFTED)
        if name in known - borders and not _is_flat(grid.shape):
            votes["last"] += _vote(orders, LAST[RANK])
    last, shifted = (None if count == 0 else count > 0 for count in votes.values())
    spread = frozenset(name for name in known if not _is_flat(program.tensors[name].shape))
    return Conventions(last, shifted, spread, borders, frozenset(ambiguous))


def _vote(agreed: AbstractSet[object], wanted: object) -> int:
    """1 for what is wanted alone, -1 for another alone, 0 for what cannot tell."""
    if len(agreed) != 1:
        return 0
    return 1 if agreed == {wanted} else -1


def _is_flat(shape: Sequence[int]) -> bool:
    """Whether channels first and last are the same bytes."""
    return len(shape) != RANK or shape[1] == 1 or shape[2] * shape[3] == 1


def _images(program: Program) -> frozenset[str]:
    """The tensors that are N, C, H, W by what makes them: windows, and element by element of
    those."""
    found: set[str] = set()
    for step in program.instructions:
        if step.op in WINDOWS:
            found.update((*step.inputs[:1], *step.outputs))
        elif step.op not in MIXING:
            read = [name for name in step.inputs if len(program.tensors[name].shape) == RANK]
            if read and found.issuperset(read):
                found.update(step.outputs)
    return frozenset(name for name in found if len(program.tensors[name].shape) == RANK)


def entry(program: Program) -> tuple[Instruction, ...]:
    """The steps that bring an input on its grid."""
    found, steps = set(program.inputs), []
    for step in program.instructions:
        if step.op in ENTRY and step.inputs and found.issuperset(step.inputs):
            found.update(step.outputs)
            steps.append(step)
    return tuple(steps)


def _borders(program: Program, strict: bool) -> frozenset[str]:
    """The inputs and what they are quantized to; the outputs and the codes they show."""
    found = {*program.inputs, *(name for step in entry(program) for name in step.outputs)}
    if not strict:
        found.update(program.outputs)
        shown = (step for step in program.instructions if step.outputs[0] in program.outputs)
        found.update(name for step in shown if step.op == "dequantize" for name in step.inputs)
    return frozenset(found)
