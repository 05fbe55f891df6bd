"""The exact engine: what ReferenceSession computes, bit for bit, at onnxruntime's speed.

Instructions that floats compute exactly (pipeline.engine.floats) run in onnxruntime, as one graph
for all that follow each other; what lies between them runs in NumPy, and a CPU subgraph as the
model it is. What does not wait for each other runs at the same time (pipeline.engine.branches). No
rounding is left to the order of a sum, so any number of threads gives the same bits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

import numpy as np

from pipeline.bundle.program import Instruction, Program
from pipeline.custom.operators import NO_OPERATORS, Operators
from pipeline.engine.branches import Branches, Turn, Values
from pipeline.engine.floats import InexactError, given_back, held_of
from pipeline.engine.ort import Feeds, OrtSession
from pipeline.engine.parallel import threads
from pipeline.engine.port import port
from pipeline.engine.reference import MISFITS, ReferenceSession
from pipeline.engine.translate import is_translatable, translated
from pipeline.graph import Building, Graph, Tensor, Value


class ExactSession:
    """A program ready to run, with the interface of a ReferenceSession.

    Raises GraphError for what a ReferenceSession refuses.
    """

    def __init__(
        self,
        program: Program,
        operators: Operators = NO_OPERATORS,
        at_once: int | None = None,
        watched: Iterable[str] = (),
    ) -> None:
        """`at_once` is the number of threads, by default one per core; `watched` are tensors inside
        that will be asked for, at this speed."""
        self._reference = ReferenceSession(program, operators)
        self.program = program
        self.inputs, self.outputs = (
            tuple(port(n, program.tensors[n].shape, program.tensors[n].dtype) for n in names)
            for names in (program.inputs, program.outputs)
        )
        self.input_names = program.inputs
        self.output_names = program.outputs
        self._threads = at_once or threads()
        self._kept = {*self.output_names, *self.input_names, *watched}
        self._last = _last_readers(program) | dict.fromkeys(self._kept, len(program.instructions))
        self.in_floats = tuple(self._is_exact(step) for step in program.instructions)
        self._branches = Branches(tuple(self._planned()), self._threads)

    def run(self, names: Sequence[str] | None, feeds: Feeds) -> list[np.ndarray]:
        """As ReferenceSession.run: the named tensors, outputs or any other."""
        if not self._kept.issuperset(names or ()):
            return self._reference.run(names, feeds)  # it keeps every tensor inside
        values = self._branches.run(self._reference.checked(feeds))
        return [values[name] for name in names or self.output_names]

    def _planned(self) -> Iterator[Turn]:
        steps = list(enumerate(self.program.instructions))
        for fast, group in groupby(steps, lambda s: self.in_floats[s[0]]):
            indices, run = zip(*group, strict=True)
            if fast:
                yield self._fast(indices[-1], run)
            else:
                yield from map(self._slow, _chains(run))

    def _is_exact(self, step: Instruction) -> bool:
        """Whether the instruction alone has a translation that keeps its bounds."""
        if not is_translatable(step, self.program):
            return False
        try:
            _translated(self.program, (step,))
        except (InexactError, *MISFITS):
            return False
        return True

    def _fast(self, last: int, steps: Sequence[Instruction]) -> Turn:
        inside = [name for step in steps for name in step.outputs]
        made = tuple(name for name in inside if self._last[name] > last)
        graph = _graph(self.program, steps, made)
        session, exactly = OrtSession(graph.to_bytes(), self._threads), self._slow(steps)

        def run(fed: Values) -> Values:
            if any(x.dtype.kind == "f" and np.isnan(x).any() for x in fed.values()):
                exactly.run(fed)  # raises what the reference raises for NaN, which has no code
            return dict(zip(made, session.run(made, fed), strict=True))

        return Turn(session.input_names, made, run)

    def _slow(self, steps: Sequence[Instruction]) -> Turn:
        made = tuple(name for step in steps for name in step.outputs)
        read = (name for step in steps for name in step.inputs if name not in made)

        def run(fed: Values) -> Values:
            values = dict(fed)
            for step in steps:
                results = self._reference.execute(step, [values[name] for name in step.inputs])
                values.update(zip(step.outputs, results, strict=True))
            return {name: values[name] for name in made}

        return Turn(tuple(dict.fromkeys(read)), made, run)


def _chains(steps: Sequence[Instruction]) -> Iterator[list[Instruction]]:
    """Steps that wait for the one before them go with it: nothing runs beside them."""
    chain: list[Instruction] = []
    for step in steps:
        if chain and not set(step.inputs) & set(chain[-1].outputs):
            yield chain
            chain = []
        chain.append(step)
    yield chain


def _last_readers(program: Program) -> dict[str, int]:
    """By tensor, the last instruction that reads it."""
    last = {name: -1 for step in program.instructions for name in step.outputs}
    for index, step in enumerate(program.instructions):
        last |= dict.fromkeys(step.inputs, index)
    return last


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
