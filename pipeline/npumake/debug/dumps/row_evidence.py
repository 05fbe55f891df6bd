"""The evidence on a row of the dump: both tensors, and what else the program could have made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Generic, TypeVar

import numpy as np

from npumake.bundle.program import Program
from npumake.custom.operators import Operators
from npumake.debug.dumps.difference import MAX_CODE_DIFFERENCE, unit
from npumake.debug.dumps.evidence import Evidence, Rerun
from npumake.debug.dumps.input_changes import ways_to_feed
from npumake.debug.dumps.inputs import DumpFeeds, numbered
from npumake.debug.dumps.last_node import LastNode
from npumake.debug.dumps.reading import CODES, SHIFTED
from npumake.debug.dumps.reruns import chain, reruns
from npumake.debug.dumps.walk import DumpRow, DumpWalk
from npumake.engine.exact import ExactSession
from npumake.engine.ort import Feeds

Item = TypeVar("Item")
Named = Iterator[tuple[str, np.ndarray]]


@dataclass(frozen=True)
class Sources:
    """What the program can make of one tensor. Programs run only when a cause asks."""

    tensor: str
    size: float  # of a code
    walk: DumpWalk
    feeding: DumpFeeds
    operators: Operators

    @cached_property
    def needed(self) -> Program:
        return chain(self.walk.program, self.tensor, frozenset())

    @cached_property
    def is_first(self) -> bool:
        """Whether the dump has no tensor before this one."""
        return not any(n in self.walk.dump for n in self.needed.tensors if n != self.tensor)

    def buffers(self) -> Named:
        """Our other tensors of this size."""
        size = self.walk.computed[self.tensor].size
        for name, values in self.walk.computed.items():
            if name != self.tensor and values.size == size and values.dtype.kind in "iuf":
                yield name, values.astype(np.float64) / self.size

    def inputs(self) -> Named:
        """This tensor for changed inputs."""
        yield from self._runs(ways_to_feed(self.feeding) if self.is_first else ())

    def samples(self) -> Named:
        """This tensor for other samples, where the tensors before it are of ours."""
        samples = numbered(self.feeding.samples) if not self.is_first else ()
        yield from self._runs(pair for pair in samples if pair[0] != self.feeding.name)

    def _runs(self, ways: Iterable[tuple[str, Feeds]]) -> Named:
        session = ExactSession(self.needed, self.operators)
        for name, feeds in ways:
            yield name, session.run([self.tensor], feeds)[0].astype(np.float64) / self.size

    def last_node(self) -> LastNode | None:
        """The node that computes this tensor, with what it read on the board."""
        program, values = self.walk.program, self.walk.board_values
        step = next((s for s in program.instructions if s.outputs == (self.tensor,)), None)
        if step is None or step.op == "onnx" or any(n not in values for n in step.inputs):
            return None
        return LastNode(step, program, {name: values[name] for name in step.inputs})

    def reruns(self) -> Iterator[Rerun]:
        """This tensor from the board's, after changes of the nodes in between."""
        known_tensors = {*self.walk.program.inputs, *self.walk.dump} - {self.tensor}
        part = chain(self.walk.program, self.tensor, known_tensors)
        for rerun in reruns(part, self.walk.board_values, self.operators):
            yield rerun._replace(values=rerun.values / self.size)


class Replayed(Generic[Item]):
    """An iterator that can be read again: readings of one tensor share what was computed."""

    def __init__(self, items: Iterator[Item]) -> None:
        self._items, self._items_read = items, list[Item]()

    def __call__(self) -> Iterator[Item]:
        at = 0
        while True:
            if at == len(self._items_read):
                try:
                    self._items_read.append(next(self._items))
                except StopIteration:
                    return
            yield self._items_read[at]
            at += 1


def evidence_of(
    rows: Sequence[DumpRow], walk: DumpWalk, feeding: DumpFeeds, operators: Operators
) -> Iterator[Evidence]:
    """What the causes of a divergence are sought in, for each reading of one tensor."""
    computed = walk.expected[rows[0].tensor].astype(np.float64)
    size = unit(computed, walk.program.tensors[rows[0].tensor])
    sources = Sources(rows[0].tensor, size, walk, feeding, operators)
    inputs, samples, reruns = (
        Replayed(sources.inputs()),
        Replayed(sources.samples()),
        Replayed(sources.reruns()),
    )
    for row in rows:
        yield replace(
            _evidence(row, walk, size),
            buffers=sources.buffers,
            inputs=inputs,
            samples=samples,
            reruns=reruns,
            last_node=sources.last_node,
        )


def _evidence(row: DumpRow, walk: DumpWalk, size: float) -> Evidence:
    program, tensors = walk.program, walk.program.tensors
    step = next((s for s in program.instructions if row.tensor in s.outputs), None)
    near = [*(step.inputs if step else ()), *_reading(program, row.tensor), *tensors]
    scales = {n: s for n in dict.fromkeys(near) if n != row.tensor and (s := tensors[n].scale)}
    computed, grid = walk.expected[row.tensor].astype(np.float64), tensors[row.tensor]
    grid = replace(grid, scale=size) if grid.scale is None else grid
    reading = replace(row.reading, codes=row.reading.codes / size)
    return Evidence(computed / size, reading, grid, step, _unlike(row, walk), scales)


def _unlike(row: DumpRow, walk: DumpWalk) -> tuple[str, str] | None:
    """A kind and a sentence, if a tensor with our values has another form than the rest of the
    dump."""
    if not row.difference.within(MAX_CODE_DIFFERENCE):
        return None
    if not walk.conventions.has_order(row.tensor, row.reading):
        layout, rest = ("NCHW", "NHWC") if walk.conventions.last else ("NHWC", "NCHW")
        return "layout", f"layout: the file is {layout}, the rest of the dump {rest}"
    if not walk.conventions.has_form(row.tensor, row.reading):
        words = f"the file has {row.reading.form}, unlike the rest of the dump"
        return "zero_point" if row.reading.form in (CODES, SHIFTED) else "scale", words
    return None


def _reading(program: Program, tensor: str) -> Iterable[str]:
    return (n for step in program.instructions if tensor in step.inputs for n in step.outputs)
