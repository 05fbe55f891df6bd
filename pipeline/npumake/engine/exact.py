"""The exact engine: bit for bit the results of ReferenceSession, at onnxruntime's speed.

Consecutive instructions that floats compute exactly (npumake.engine.floats) run in onnxruntime as
one graph. The others run in NumPy, and a CPU subgraph runs as its own model. Independent steps run
in parallel (npumake.engine.branches). No rounding depends on the order of a sum, so any number of
threads gives the same bits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

import numpy as np

from npumake.bundle.program import SUMS, Instruction, Program
from npumake.custom.operators import NO_OPERATORS, Operators
from npumake.engine.branches import Branches, ParallelTurn, Values
from npumake.engine.floats import InexactError, codes_of, steps_of
from npumake.engine.ort import Feeds, OrtSession
from npumake.engine.parallel import threads
from npumake.engine.port import port
from npumake.engine.reference import ReferenceSession
from npumake.engine.translate import is_translatable, translated
from npumake.graph import Building, Graph, TensorSpec, Value

# An onnxruntime session of several threads has a pool of its own. A program that alternates between
# onnxruntime and NumPy a thousand times has as many sessions, and the stacks of as many pools
# outgrow the memory limit of a process.
MAX_POOLS = 64
MAX_STEPS = 512  # tensors of one session: onnxruntime opens larger ones in more than linear time


class ExactSession:
    """A program ready to run, with the interface of a ReferenceSession.

    Raises GraphError for a graph that a ReferenceSession refuses.
    """

    def __init__(
        self,
        program: Program,
        operators: Operators = NO_OPERATORS,
        at_once: int | None = None,
        watched: Iterable[str] = (),
    ) -> None:
        """`at_once` is the number of threads, by default one per core. `watched` names inner
        tensors that `run` will also return at this speed."""
        self._reference = ReferenceSession(program, operators)
        self.program = program
        self.operators = operators
        self.inputs, self.outputs = (
            tuple(port(n, program.tensors[n].shape, program.tensors[n].dtype) for n in names)
            for names in (program.inputs, program.outputs)
        )
        self.input_names = program.inputs
        self.output_names = program.outputs
        self._threads = at_once or threads()
        self._available = {*self.output_names, *self.input_names, *watched}
        stretches = list(_stretches(program))
        self._session_threads = self._threads if len(stretches) <= MAX_POOLS else 1
        self.in_floats = tuple(floats is not None for floats, steps in stretches for _ in steps)
        self._branches = Branches(tuple(self._planned(stretches)), self._threads)

    def run(self, names: Sequence[str] | None, feeds: Feeds) -> list[np.ndarray]:
        """Returns the named tensors, outputs or inner ones, as ReferenceSession.run does."""
        if not self._available.issuperset(names or ()):
            return self._reference.run(names, feeds)  # the reference keeps every inner tensor
        values = self._branches.run(self._reference.checked(feeds))
        return [values[name] for name in names or self.output_names]

    def _planned(self, stretches: Sequence[_Stretch]) -> Iterator[ParallelTurn]:
        last = _last_readers(self.program) | dict.fromkeys(
            self._available, len(self.program.instructions)
        )
        end = 0
        for floats, steps in stretches:
            end += len(steps)
            if floats is None:
                yield from map(self._slow, _chains(steps))
            else:
                inside = (name for step in steps for name in step.outputs)
                yield self._fast(floats, steps, tuple(n for n in inside if last[n] >= end))

    def _fast(
        self, floats: _Floats, steps: Sequence[Instruction], outputs: tuple[str, ...]
    ) -> ParallelTurn:
        graph, exactly = floats.graph(outputs), self._slow(steps)
        if not graph.inputs:  # onnxruntime folds it away, and refuses the empty graph
            return exactly
        session = OrtSession(graph.to_bytes(), self._session_threads)

        def run(feeds: Values) -> Values:
            if any(x.dtype.kind == "f" and np.isnan(x).any() for x in feeds.values()):
                exactly.run(feeds)  # raises the reference's error for NaN, which has no code
            return dict(zip(outputs, session.run(outputs, feeds), strict=True))

        return ParallelTurn(session.input_names, outputs, run)

    def _slow(self, steps: Sequence[Instruction]) -> ParallelTurn:
        outputs = tuple(name for step in steps for name in step.outputs)
        read = (name for step in steps for name in step.inputs if name not in outputs)

        def run(feeds: Values) -> Values:
            values = dict(feeds)
            for step in steps:
                results = self._reference.execute(step, [values[name] for name in step.inputs])
                values.update(zip(step.outputs, results, strict=True))
            return {name: values[name] for name in outputs}

        return ParallelTurn(tuple(dict.fromkeys(read)), outputs, run)


def _chains(steps: Sequence[Instruction]) -> Iterator[list[Instruction]]:
    """Steps grouped into chains: each step of a chain waits for the one before it."""
    chain: list[Instruction] = []
    for step in steps:
        if chain and not set(step.inputs) & set(chain[-1].outputs):
            yield chain
            chain = []
        chain.append(step)
    yield chain


def _last_readers(program: Program) -> dict[str, int]:
    """By tensor, the index of the last instruction that reads it."""
    last = {name: -1 for step in program.instructions for name in step.outputs}
    for index, step in enumerate(program.instructions):
        last |= dict.fromkeys(step.inputs, index)
    return last


class _Floats:
    """Consecutive instructions as one float graph that holds their integers."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._building = Building((), reserved=program.tensors)
        self._steps: dict[str, Value] = {}

    @property
    def is_full(self) -> bool:
        return len(self._steps) >= MAX_STEPS

    def takes(self, step: Instruction) -> bool:
        """Adds the instruction if it has a translation within its bounds; False ends the group."""
        if not is_translatable(step, self._program):
            return False
        try:
            self._read(step)
            self._steps[step.outputs[0]] = translated(
                self._building, step, self._program, self._steps
            )
        except InexactError:
            return False
        return True

    def _read(self, step: Instruction) -> None:
        for name in step.inputs:
            if name not in self._steps:
                grid = self._program.tensors[name]
                if grid.dtype == SUMS and step.op != "dequantize":  # it rounds to float32 as well
                    raise InexactError  # NumPy's sums may exceed what float32 holds
                value = self._building.input(TensorSpec(name, grid.shape, grid.dtype))
                self._steps[name] = steps_of(self._building, value, grid)

    def graph(self, outputs: Iterable[str]) -> Graph:
        """Codes in, codes out."""
        tensors = self._program.tensors
        graph = self._building.to_graph(
            {n: codes_of(self._building, self._steps[n], n, tensors[n]) for n in outputs}
        )
        for value in graph.inputs:
            if not value.uses():  # only the instruction that ended the group reads it
                graph.drop_input(value)
        return graph


_Stretch = tuple[_Floats | None, Sequence[Instruction]]


def _stretches(program: Program) -> Iterator[_Stretch]:
    """The instructions in order, grouped by float graph; None marks those left to NumPy."""
    floats = _Floats(program)

    def graph_of(step: Instruction) -> _Floats | None:
        nonlocal floats
        if floats.is_full:
            floats = _Floats(program)
        if floats.takes(step):
            return floats
        floats = _Floats(program)
        return None

    for home, steps in groupby(program.instructions, graph_of):
        yield home, list(steps)
