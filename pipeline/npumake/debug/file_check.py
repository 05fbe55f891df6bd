"""Runs the compiled file on samples and compares it with the integer engine.

The file runs in a process of its own (npumake.runtime.isolated) while this one computes the same
samples in exact integers and in float. A difference above the target's bound is an error that
names the first differing node (npumake.debug.divergence).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from npumake.bundle.program import Tensor
from npumake.custom.operators import NO_OPERATORS, Operators
from npumake.debug.compared import DIGITS, rounded
from npumake.debug.compared_models import real_numbers
from npumake.debug.compiled_check import CheckedOutput, CompiledCheck
from npumake.debug.file_runs import RUNTIMES, CompiledPart, job_of, model_outputs
from npumake.debug.tensor_agreement import TensorAgreement, output_grid, tensor_agreement
from npumake.engine.exact import ExactSession
from npumake.engine.float_session import float_session
from npumake.engine.ort import Feeds
from npumake.engine.parallel import NUMPY, side_by_side
from npumake.errors import StageError
from npumake.graph import Graph
from npumake.kernels.measure import Alignment, alignments
from npumake.late import when_used
from npumake.progress import track
from npumake.runtime.isolated import Isolated, RunError

with when_used("npumake.debug.divergence"):  # it compiles; only a fault needs it
    from npumake.debug import divergence

MAX_SAMPLES_PER_PROCESS = 64  # bounds the files in the process's folder
UNCHECKED = 'comparison: {compiled: "off"} leaves the file as it is, unchecked'


class NamedSample(NamedTuple):
    """A sample and its name."""

    name: str
    feed: Feeds


class _Output(NamedTuple):
    """The figures of one output so far."""

    aligned: Alignment = Alignment()
    codes: int = 0
    relative: float = 0.0
    dtype: str = ""

    def plus(self, aligned: Alignment, agreement: TensorAgreement, dtype: str) -> _Output:
        codes = max(self.codes, agreement.codes or 0)
        relative = max(self.relative, agreement.relative or 0.0)
        return _Output(self.aligned + aligned, codes, relative, dtype)


def check_file(
    real: Graph,
    part: CompiledPart,
    samples: Sequence[NamedSample],
    operators: Operators = NO_OPERATORS,
) -> CompiledCheck:
    """Run the file of `part` on all `samples`; `real` is the float model.

    Raises StageError if the file's process ends early, or if an output differs from the integer
    engine by more than `target.compiled_bound`.
    """
    sums = dict.fromkeys(part.program.outputs, _Output())
    check = _Check(real, part, operators)
    for start in range(0, len(samples), MAX_SAMPLES_PER_PROCESS):
        check.add(samples[start : start + MAX_SAMPLES_PER_PROCESS], sums)
    runtime = RUNTIMES[part.target.backend]
    outputs = tuple(
        _checked_output(name, sums[name], output_grid(part.program, name))
        for name in part.program.outputs
    )
    notes = (f"the file that was run is {runtime.note}",) if runtime.note else ()
    return CompiledCheck(part.target.name, runtime.name, len(samples), outputs, notes)


class _Check:
    def __init__(self, real: Graph, part: CompiledPart, operators: Operators) -> None:
        self._real, self._part, self._operators = real, part, operators

    def add(self, samples: Sequence[NamedSample], sums: dict[str, _Output]) -> None:
        """Run these samples and add their figures. Raises StageError."""
        names = self._part.program.outputs
        with Isolated(
            job_of(self._part, [checked_sample.feed for checked_sample in samples])
        ) as process:
            computed = list(self._computed(samples))
            outputs = model_outputs(self._part, process.outputs())
            for sample, (floats, exact) in zip(samples, computed, strict=True):
                arrays = self._next(outputs, sample, samples)
                for name, a, b in zip(names, floats, exact, strict=True):
                    self._add(name, (a, b, arrays[name]), sample, sums)

    def _computed(
        self, samples: Sequence[NamedSample]
    ) -> Iterator[tuple[list[np.ndarray], list[np.ndarray]]]:
        """The outputs of each sample in float and in exact integers."""
        exact = ExactSession(self._part.program, self._operators, 1)
        floats = float_session(self._real, self._operators)

        def outputs(sample: NamedSample) -> tuple[list[np.ndarray], list[np.ndarray]]:
            with NUMPY:
                return floats.run(None, sample.feed), exact.run(None, sample.feed)

        yield from side_by_side(outputs, track(samples, "compiled_check", len(samples)))

    def _next(
        self,
        outputs: Iterator[Mapping[str, np.ndarray]],
        sample: NamedSample,
        samples: Sequence[NamedSample],
    ) -> Mapping[str, np.ndarray]:
        try:
            return next(outputs)
        except RunError as error:
            raise self._aborted(error, samples) from error

    def _add(
        self,
        name: str,
        arrays: tuple[np.ndarray, np.ndarray, np.ndarray],
        sample: NamedSample,
        sums: dict[str, _Output],
    ) -> None:
        floats, exact, compiled = arrays
        grid = output_grid(self._part.program, name)
        if not np.isfinite(real_numbers(exact, grid)).all():
            raise self._infinite(name, sample)
        agreement = tensor_agreement(exact, compiled, grid)
        if not agreement.within(self._part.target.compiled_bound):
            raise self._beyond(name, agreement, sample)
        (aligned,) = alignments(floats, [real_numbers(compiled, grid)])
        sums[name] = sums[name].plus(aligned, agreement, str(compiled.dtype))

    # -- errors ----------------------------------------------------------------------------

    def _beyond(self, name: str, agreement: TensorAgreement, sample: NamedSample) -> StageError:
        bound = self._part.target.compiled_bound
        fault = divergence.first_node(self._part, sample.feed, name, self._operators)
        allowed = "" if agreement.problem else f", more than {_allowed(agreement, bound)}"
        message = (
            f"the compiled file differs from the integer engine: output `{name}` "
            f"is {'wrong: ' if agreement.problem else 'off by '}{agreement}{allowed}, "
            f"fed `{sample.name}`"
        )
        return StageError(f"{message}; {_first_difference(fault)}", None, UNCHECKED)

    def _infinite(self, name: str, sample: NamedSample) -> StageError:
        culprit = divergence.first_infinite(self._part.program, sample.feed, self._operators)
        message = f"output `{name}` is NaN or infinite in the integer engine, fed `{sample.name}`"
        return StageError(f"{message}; {culprit}")

    def _aborted(self, error: RunError, samples: Sequence[NamedSample]) -> StageError:
        runtime = RUNTIMES[self._part.target.backend].name
        during = "while it is opened" if error.run is None else f"fed `{samples[error.run].name}`"
        fault = divergence.first_node(
            self._part, samples[error.run or 0].feed, None, self._operators
        )
        log = "".join(f"\n  {line}" for line in error.lines)
        message = (
            f"the compiled file in {runtime}: {error.what}, {during}; {_first_difference(fault)}"
        )
        return StageError(message + log, None, UNCHECKED)


def _checked_output(name: str, output: _Output, grid: Tensor) -> CheckedOutput:
    is_on_grid = grid.scale is not None or np.dtype(grid.dtype).kind != "f"
    return CheckedOutput(
        name,
        round(output.aligned.cosine, DIGITS),
        output.codes if is_on_grid else None,
        None if is_on_grid else rounded(output.relative),
        output.dtype,
        grid.shape,
    )


def _allowed(agreement: TensorAgreement, bound: object) -> str:
    unit = "codes" if agreement.codes is not None else "relative"
    return f"{getattr(bound, unit)}"


def _first_difference(fault: divergence.Fault | None) -> str:
    if fault is None:
        return "no node, compiled alone, differs: was the file changed after compilation?"
    return f"the first node that differs is {fault}"
