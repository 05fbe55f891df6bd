"""Conventions of a whole dump: channels first or last, and the form of its values.

Tensors that agree with ours in exactly one reading vote. A tensor that then agrees only in another
reading was written differently from the rest, which counts as a divergence.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from npumake.bundle.program import Instruction, Program
from npumake.debug.dumps.difference import MAX_CODE_DIFFERENCE, difference
from npumake.debug.dumps.reading import TO_CHANNELS_LAST, DumpReading

RANK = 4  # of an image
WINDOWS = frozenset(
    {"conv", "conv_transpose", "max_pool", "average_pool", "average_twice"}
    | {"resize_nearest", "resize_linear", "resize_twice"}
)
MIXING = frozenset(
    {"reshape", "transpose", "slice", "pad", "gather", "onnx", "quantize", "dequantize"}
)  # change the axes, or float to quantized and back
ENTRY = frozenset({"quantize", "dequantize", "rescale", "transpose", "reshape", "onnx"})


@dataclass(frozen=True)
class Conventions:
    """`last`: images are channels last; None if unknown. `forms`: possible forms of a file -> the
    form that the dump uses. At the `borders` of the model every tensor may differ."""

    last: bool | None = None
    forms: Mapping[frozenset[str], str] = field(default_factory=dict)
    images: frozenset[str] = field(default_factory=frozenset)
    borders: frozenset[str] = field(default_factory=frozenset)
    allowed: Mapping[str, frozenset[str]] = field(default_factory=dict)  # by tensor

    def holds(self, name: str, reading: DumpReading) -> bool:
        return self.has_order(name, reading) and self.has_form(name, reading)

    def has_order(self, name: str, reading: DumpReading) -> bool:
        if self.last is None or name in self.borders or name not in self.images:
            return True
        return (reading.order == TO_CHANNELS_LAST[RANK]) == self.last

    def has_form(self, name: str, reading: DumpReading) -> bool:
        form = self.forms.get(self.allowed.get(name, frozenset()))
        return name in self.borders or form in (None, reading.form)

    def sorted(self, name: str, ways: Sequence[DumpReading]) -> list[DumpReading]:
        """The readings, those that follow the conventions first."""
        return sorted(ways, key=lambda way: not self.holds(name, way))


def conventions(
    program: Program,
    computed: Mapping[str, np.ndarray],
    dump: Mapping[str, Sequence[DumpReading]],
    strict: bool,
) -> Conventions:
    """The conventions of a dump. `strict`: model outputs follow those of inner tensors."""
    images, borders = _images(program), _borders(program, strict)
    allowed = {name: frozenset(way.form for way in ways) for name, ways in dump.items()}
    forms, last = defaultdict[frozenset[str], Counter[str]](Counter), 0
    for name, ways in dump.items():
        values, grid = computed[name].astype(np.float64), program.tensors[name]
        agreed = [
            way for way in ways if difference(values, way.codes, grid).within(MAX_CODE_DIFFERENCE)
        ]
        agreed_forms = {way.form for way in agreed}
        if len(agreed_forms) == 1 < len(allowed[name]):
            forms[allowed[name]].update(agreed_forms)
        orders = {way.order for way in agreed}
        if name in images - borders and not _is_flat(grid.shape) and len(orders) == 1:
            last += 1 if orders == {TO_CHANNELS_LAST[RANK]} else -1
    return Conventions(
        None if last == 0 else last > 0,
        {alternatives: votes.most_common(1)[0][0] for alternatives, votes in forms.items()},
        frozenset(name for name in images if not _is_flat(program.tensors[name].shape)),
        borders,
        allowed,
    )


def _is_flat(shape: Sequence[int]) -> bool:
    """Whether channels first and channels last have the same bytes."""
    return len(shape) != RANK or shape[1] == 1 or shape[2] * shape[3] == 1


def _images(program: Program) -> frozenset[str]:
    """The tensors with N, C, H, W axes by their producers: windowed operators, and elementwise ones
    behind them. Compilers lay out float tensors freely, so quantize ends the chain."""
    tensors: set[str] = set()
    for step in program.instructions:
        if step.op in WINDOWS:
            tensors.update(step.outputs)
        elif step.op not in MIXING:
            read = [name for name in step.inputs if len(program.tensors[name].shape) == RANK]
            if read and tensors.issuperset(read):
                tensors.update(step.outputs)
    return frozenset(name for name in tensors if len(program.tensors[name].shape) == RANK)


def entry(program: Program) -> tuple[Instruction, ...]:
    """The steps that quantize the model's inputs."""
    tensors, steps = set(program.inputs), []
    for step in program.instructions:
        if step.op in ENTRY and len(step.inputs) == 1 and tensors.issuperset(step.inputs):
            tensors.update(step.outputs)
            steps.append(step)
    return tuple(steps)


def _borders(program: Program, strict: bool) -> frozenset[str]:
    """The inputs and outputs, and their quantized tensors."""
    tensors = {*program.inputs, *(name for step in entry(program) for name in step.outputs)}
    if not strict:
        tensors.update(program.outputs)
        makers = (step for step in program.instructions if step.outputs[0] in program.outputs)
        tensors.update(name for step in makers if step.op == "dequantize" for name in step.inputs)
    return frozenset(tensors)
