"""Runs the program along the dump: each node computes from the board's tensors.

A tensor in the dump is compared with ours, computed from the board's inputs as far as they are
known; the nodes behind it continue with the board's values. So a node counts only for its own
difference, and rounding differences do not accumulate.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from npumake.bundle.program import Instruction, Program, Tensor
from npumake.debug.dumps.conventions import Conventions
from npumake.debug.dumps.difference import MAX_CODE_DIFFERENCE, CodeDifference, difference
from npumake.debug.dumps.reading import DumpReading
from npumake.engine.reference import ReferenceSession

MAX_DEPTH = 7  # nodes without a dump; each may add a difference of one code
EXACT = frozenset({"reshape", "transpose", "slice", "pad", "gather", "dequantize"})  # no rounding
EQUAL, WITHIN, FOLLOWS, DIFFERS = "equal", "within", "follows", "differs"

Values = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class DumpRow:
    """A tensor of the dump against ours. `between` are the nodes, missing in the dump, between this
    tensor and earlier ones in the dump."""

    node: str
    op: str
    tensor: str
    origin: tuple[str, ...]
    status: str
    difference: CodeDifference
    reading: DumpReading
    between: tuple[str, ...] = ()


@dataclass
class DumpWalk:
    """One pass over the program. `computed` are our values, `board_values` those that later nodes
    read."""

    program: Program
    session: ReferenceSession
    computed: Values
    dump: Mapping[str, Sequence[DumpReading]]
    conventions: Conventions
    board_values: dict[str, np.ndarray] = field(default_factory=dict)
    depth: dict[str, int] = field(default_factory=dict)
    between: dict[str, tuple[str, ...]] = field(default_factory=dict)
    expected: dict[str, np.ndarray] = field(default_factory=dict)
    deviates: bool = True  # whether the board may round differently, until known
    compared: bool = False

    def rows(self) -> Iterator[DumpRow]:
        for name in self.program.inputs:
            self.board_values[name], self.depth[name], self.between[name] = (
                self.computed[name],
                0,
                (),
            )
            if name in self.dump:
                yield self._compared(name, None, self.computed[name], 0, ())
        for step in self.program.instructions:
            yield from self._stepped(step)

    def _stepped(self, step: Instruction) -> Iterator[DumpRow]:
        unchanged = all(self.board_values[name] is self.computed[name] for name in step.inputs)
        read = [self.board_values[name] for name in step.inputs]
        own = [self.computed[name] for name in step.outputs]
        outputs = own if unchanged else self.session.execute(step, read)
        depth = max((self.depth[name] for name in step.inputs), default=0)
        before = dict.fromkeys(node for name in step.inputs for node in self.between[name])
        for name, values in zip(step.outputs, outputs, strict=True):
            if name in self.dump:
                yield self._compared(name, step, np.asarray(values), depth, tuple(before))
            else:
                self.board_values[name] = np.asarray(values)
                self.depth[name] = depth + (step.op not in EXACT)
                self.between[name] = (*before, step.name)

    def _compared(
        self,
        name: str,
        step: Instruction | None,
        expected: np.ndarray,
        depth: int,
        between: tuple[str, ...],
    ) -> DumpRow:
        grid = self.program.tensors[name]
        bound = MAX_CODE_DIFFERENCE + (min(depth, MAX_DEPTH) if self.deviates else 0)
        reading = self._read(name, (expected, self.computed[name]), grid)
        own, local = (
            difference(values.astype(np.float64), reading.codes, grid)
            for values in (self.computed[name], expected)
        )
        status, code_difference = _status(own, local, bound)
        if not self.conventions.holds(name, reading):
            status, code_difference = DIFFERS, local
        self._observe(name, code_difference, status)
        self.expected[name] = expected
        self.board_values[name] = (
            self.computed[name] if status == EQUAL else as_values(reading.codes, grid)
        )
        self.depth[name], self.between[name] = 0, ()
        if status in (EQUAL, FOLLOWS):  # its values are not needed again
            reading = replace(reading, codes=np.empty(0), raw=np.empty(0))
        if step is None:
            return DumpRow(name, "input", name, (), status, code_difference, reading)
        return DumpRow(
            step.name, step.op, name, step.origin, status, code_difference, reading, between
        )

    def _observe(self, name: str, code_difference: CodeDifference, status: str) -> None:
        """A board whose first tensor equals ours must stay exact."""
        if name not in self.conventions.borders and status in (EQUAL, WITHIN):
            is_first = not self.compared
            self.deviates = (self.deviates and not is_first) or code_difference.worst > 0.5
            self.compared = True

    def _read(self, name: str, computed: Iterable[np.ndarray], grid: Tensor) -> DumpReading:
        """The reading that agrees; else the likeliest one by the dump's conventions."""
        floats = [values.astype(np.float64) for values in computed]
        ways = self.conventions.sorted(name, self.dump[name])
        for way in ways:
            if any(
                difference(values, way.codes, grid).within(MAX_CODE_DIFFERENCE) for values in floats
            ):
                return way
        return ways[0]


def _status(own: CodeDifference, local: CodeDifference, bound: float) -> tuple[str, CodeDifference]:
    """The status by our value (`own`), and by the node's result for the board's inputs
    (`local`)."""
    if own.within(bound):
        return (EQUAL if own.is_equal else WITHIN), own
    if local.within(bound):
        return FOLLOWS, local
    return DIFFERS, local


def as_values(codes: np.ndarray, grid: Tensor) -> np.ndarray:
    """The values for later nodes: integers in the type's range, or floats."""
    if grid.scale is None:
        return codes.astype(grid.dtype)
    limits = np.iinfo(grid.dtype)
    whole = np.rint(np.nan_to_num(codes, nan=float(grid.zero_point)))
    return np.clip(whole, limits.min, limits.max).astype(grid.dtype)
