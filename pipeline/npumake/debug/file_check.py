"""The compiled file, run on samples and held to the integer engine.

It runs in a process of its own (npumake.runtime.isolated) while this one computes the same samples
in exact integers and in float. What goes beyond the target's bound is an error that names the first
node that differs (npumake.debug.divergence).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from npumake.bundle.program import Tensor
from npumake.custom.operators import NO_OPERATORS, Operators
from npumake.debug.compare import real_numbers
from npumake.debug.compared import DIGITS, rounded
from npumake.debug.compiled_check import CheckedOutput, CompiledCheck
from npumake.debug.divergence import Fault, first_infinite, first_node
from npumake.debug.file_runs import RUNTIMES, CompiledPart, answers, job_of
from npumake.debug.tensor_agreement import TensorAgreement, output_grid, tensor_agreement
from npumake.engine.exact import ExactSession
from npumake.engine.float_session import float_session
from npumake.engine.ort import Feeds
from npumake.engine.parallel import NUMPY, side_by_side
from npumake.errors import StageError
from npumake.graph import Graph
from npumake.kernels.measure import Alignment, alignments
from npumake.progress import track
from npumake.runtime.isolated import Isolated, RunError

AT_ONCE = 64  # samples of one process: what lies in its folder is bounded
UNCHECKED = 'comparison: {compiled: "off"} leaves the file as it is, unchecked'


class NamedSample(NamedTuple):
    """A sample and its name."""

    name: str
    feed: Feeds


class _Output(NamedTuple):
    """What was found of one output so far."""

    aligned: Alignment = Alignment()
    codes: int = 0
    relative: float = 0.0
    dtype: str = ""

    def plus(self, aligned: Alignment, found: TensorAgreement, dtype: str) -> _Output:
        codes = max(self.codes, found.codes or 0)
        relative = max(self.relative, found.relative or 0.0)
        return _Output(self.aligned + aligned, codes, relative, dtype)


def check_file(
    real: Graph, part: CompiledPart, fed: Sequence[NamedSample], operators: Operators = NO_OPERATORS
) -> CompiledCheck:
    """Run the file of `part` on all that is `fed`; `real` is the float model.

    Raises StageError for a file that cannot be run to its end, and for an output that is further
    from the integer engine than `target.compiled_bound` allows.
    """
    sums = dict.fromkeys(part.program.outputs, _Output())
    check = _Check(real, part, operators)
    for start in range(0, len(fed), AT_ONCE):
        check.add(fed[start : start + AT_ONCE], sums)
    runtime = RUNTIMES[part.target.backend]
    outputs = tuple(
        _told(name, sums[name], output_grid(part.program, name)) for name in part.program.outputs
    )
    notes = (f"what was run is {runtime.note}",) if runtime.note else ()
    return CompiledCheck(part.target.name, runtime.name, len(fed), outputs, notes)


class _Check:
    def __init__(self, real: Graph, part: CompiledPart, operators: Operators) -> None:
        self._real, self._part, self._operators = real, part, operators

    def add(self, fed: Sequence[NamedSample], sums: dict[str, _Output]) -> None:
        """What these samples tell. Raises StageError."""
        names = self._part.program.outputs
        with Isolated(job_of(self._part, [each.feed for each in fed])) as process:
            computed = list(self._computed(fed))
            made = answers(self._part, process.outputs())
            for one, (floats, exact) in zip(fed, computed, strict=True):
                found = self._next(made, one, fed)
                for name, a, b in zip(names, floats, exact, strict=True):
                    self._add(name, (a, b, found[name]), one, sums)

    def _computed(
        self, fed: Sequence[NamedSample]
    ) -> Iterator[tuple[list[np.ndarray], list[np.ndarray]]]:
        """Of each sample, the outputs in float and in exact integers."""
        exact = ExactSession(self._part.program, self._operators, 1)
        floats = float_session(self._real, self._operators)

        def both(one: NamedSample) -> tuple[list[np.ndarray], list[np.ndarray]]:
            with NUMPY:
                return floats.run(None, one.feed), exact.run(None, one.feed)

        yield from side_by_side(both, track(fed, "compiled_check", len(fed)))

    def _next(
        self, made: Iterator[Mapping[str, np.ndarray]], one: NamedSample, fed: Sequence[NamedSample]
    ) -> Mapping[str, np.ndarray]:
        try:
            return next(made)
        except RunError as error:
            raise self._aborted(error, fed) from error

    def _add(
        self,
        name: str,
        arrays: tuple[np.ndarray, np.ndarray, np.ndarray],
        one: NamedSample,
        sums: dict[str, _Output],
    ) -> None:
        floats, exact, made = arrays
        grid = output_grid(self._part.program, name)
        if not np.isfinite(real_numbers(exact, grid)).all():
            raise self._infinite(name, one)
        found = tensor_agreement(exact, made, grid)
        if not found.within(self._part.target.compiled_bound):
            raise self._beyond(name, found, one)
        (aligned,) = alignments(floats, [real_numbers(made, grid)])
        sums[name] = sums[name].plus(aligned, found, str(made.dtype))

    # -- errors ----------------------------------------------------------------------------

    def _beyond(self, name: str, found: TensorAgreement, one: NamedSample) -> StageError:
        bound = self._part.target.compiled_bound
        fault = first_node(self._part, one.feed, name, self._operators)
        allowed = "" if found.problem else f", more than {_allowed(found, bound)}"
        what = (
            f"the compiled file computes something else than the integer engine: output `{name}` "
            f"is {'wrong: ' if found.problem else 'off by '}{found}{allowed}, fed `{one.name}`"
        )
        return StageError(f"{what}; {_blamed(fault)}", None, UNCHECKED)

    def _infinite(self, name: str, one: NamedSample) -> StageError:
        who = first_infinite(self._part.program, one.feed, self._operators)
        what = f"output `{name}` is NaN or infinite in the integer engine, fed `{one.name}`; {who}"
        return StageError(what)

    def _aborted(self, error: RunError, fed: Sequence[NamedSample]) -> StageError:
        runtime = RUNTIMES[self._part.target.backend].name
        during = "while it is opened" if error.run is None else f"fed `{fed[error.run].name}`"
        fault = first_node(self._part, fed[error.run or 0].feed, None, self._operators)
        said = "".join(f"\n  {line}" for line in error.lines)
        what = f"the compiled file in {runtime}: {error.what}, {during}; {_blamed(fault)}{said}"
        return StageError(what, None, UNCHECKED)


def _told(name: str, found: _Output, grid: Tensor) -> CheckedOutput:
    is_on_grid = grid.scale is not None or np.dtype(grid.dtype).kind != "f"
    return CheckedOutput(
        name,
        round(found.aligned.cosine, DIGITS),
        found.codes if is_on_grid else None,
        None if is_on_grid else rounded(found.relative),
        found.dtype,
        grid.shape,
    )


def _allowed(found: TensorAgreement, bound: object) -> str:
    unit = "codes" if found.codes is not None else "relative"
    return f"{getattr(bound, unit)}"


def _blamed(fault: Fault | None) -> str:
    if fault is None:
        return "no node of it, compiled alone, shows that: is the file the one that was compiled?"
    return f"the first node that differs is {fault}"
