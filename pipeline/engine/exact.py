"""The exact engine: what ReferenceSession computes, bit for bit, at onnxruntime's speed.

Instructions that floats compute exactly (pipeline.engine.floats) run in onnxruntime, as one graph
for all that follow each other; what lies between them runs in NumPy. No rounding is left to the
order of a sum, so any number of threads gives the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby

import numpy as np

from pipeline.bundle.program import Instruction, Program
from pipeline.custom.operators import NO_OPERATORS, Operators
from pipeline.engine.floats import InexactError, given_back, held_of
from pipeline.engine.ort import Feeds, OrtSession
from pipeline.engine.parallel import threads
from pipeline.engine.port import port
from pipeline.engine.reference import MISFITS, ReferenceSession
from pipeline.engine.translate import is_translatable, translated
from pipeline.graph import Building, Graph, Tensor, Value

Values = dict[str, np.ndarray]
Turn = Callable[[Values], None]  # adds what it makes


class ExactSession:
    """A program ready to run, with the interface of a ReferenceSession.

    Raises GraphError for what a ReferenceSession refuses.
    """

    def __init__(
        self, program: Program, operators: Operators = NO_OPERATORS, at_once: int | None = None
    ) -> None:
        """`at_once` is the number of threads, by default one per core."""
        self._reference = ReferenceSession(program, operators)
        self.program = program
        self.inputs, self.outputs = (
            tuple(port(n, program.tensors[n].shape, program.tensors[n].dtype) for n in names)
            for names in (program.inputs, program.outputs)
        )
        self.input_names = program.inputs
        self.output_names = program.outputs
        self._threads = at_once or threads()
        self._last = _last_readers(program)
        self.in_floats = tuple(self._is_exact(step) for step in program.instructions)
        self._turns = tuple(self._planned())

    def run(self, names: Sequence[str] | None, feeds: Feeds) -> list[np.ndarray]:
        """As ReferenceSession.run: the named tensors, outputs or any other."""
        if not set(names or ()) <= {*self.output_names, *self.input_names}:
            return self._reference.run(names, feeds)  # a tensor inside: only it keeps them
        values = dict(self._reference.checked(feeds))
        for turn in self._turns:
            turn(values)
        return [values[name] for name in names or self.output_names]

    def _planned(self) -> list[Turn]:
        steps = list(enumerate(self.program.instructions))
        turns: list[Turn] = []
        for fast, group in groupby(steps, lambda s: self.in_floats[s[0]]):
            indices, run = zip(*group, strict=True)
            turns += self._fast(indices[-1], run) if fast else map(self._slow, run)
        return turns

    def _is_exact(self, step: Instruction) -> bool:
        """Whether the instruction alone has a translation that keeps its bounds."""
        if not is_translatable(step, self.program):
            return False
        try:
            _translated(self.program, (step,))
        except (InexactError, *MISFITS):
            return False
        return True

    def _fast(self, last: int, steps: Sequence[Instruction]) -> list[Turn]:
        inside = [name for step in steps for name in step.outputs]
        made = tuple(name for name in inside if self._last[name] > last)
        graph = _graph(self.program, steps, made)
        session = OrtSession(graph.to_bytes(), self._threads)

        def turn(values: Values) -> None:
            fed = {name: values[name] for name in session.input_names}
            if any(x.dtype.kind == "f" and np.isnan(x).any() for x in fed.values()):
                self._refuse(steps, values)
            values.update(zip(made, session.run(made, fed), strict=True))

        return [turn]

    def _refuse(self, steps: Sequence[Instruction], values: Values) -> None:
        """Raises what the reference raises for NaN, which has no code."""
        for step in steps:
            self._slow(step)(values)

    def _slow(self, step: Instruction) -> Turn:
        def turn(values: Values) -> None:
            made = self._reference.execute(step, [values[name] for name in step.inputs])
            values.update(zip(step.outputs, made, strict=True))

        return turn


def _last_readers(program: Program) -> Mapping[str, int]:
    """By tensor, the last instruction that reads it; beyond them all for an output."""
    last = {name: -1 for step in program.instructions for name in step.outputs}
    for index, step in enumerate(program.instructions):
        last |= dict.fromkeys(step.inputs, index)
    return last | dict.fromkeys(program.outputs, len(program.instructions))


def _graph(program: Program, steps: Sequence[Instruction], made: Sequence[str]) -> Graph:
    """Codes in, codes out. Raises GraphError where shapes do not fit."""
    building, held = _translated(program, steps)
    return building.finished(
        {name: given_back(building, held[name], name, program.tensors[name]) for name in made}
    )


def _translated(
    program: Program, steps: Sequence[Instruction]
) -> tuple[Building, Mapping[str, Value]]:
    """What holds each tensor of the instructions, by name. Raises InexactError."""
    own = {name for step in steps for name in step.outputs}
    read = dict.fromkeys(name for step in steps for name in step.inputs if name not in own)
    tensors = program.tensors
    building = Building(Tensor(name, tensors[name].shape, tensors[name].dtype) for name in read)
    held = {
        name: held_of(building, given, tensors[name])
        for name, given in zip(read, building.inputs, strict=True)
    }
    for step in steps:
        held[step.outputs[0]] = translated(building, step, program, held)
    return building, held
