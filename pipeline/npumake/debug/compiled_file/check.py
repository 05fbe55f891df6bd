"""Runs the compiled file on samples and judges its nodes.

The file runs in a process of its own (npumake.runtime.isolated) while this one computes the same
samples in exact integers and in float. Each node is judged from the file's own tensors
(npumake.debug.compiled_file.nodes), so there is no bound on what a network's output may be off. A
wrong node, or a weight that differs in the file, is an error that names the node.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from math import prod
from typing import NamedTuple

import numpy as np

from npumake.bundle.program import Program
from npumake.custom.operators import NO_OPERATORS, Operators
from npumake.debug.compared_models import real_numbers
from npumake.debug.compiled_check import CompiledCheck
from npumake.debug.compiled_file.fault import (
    Fault,
    fault_of,
    first_infinite,
    hidden_nodes,
    maker_of,
)
from npumake.debug.compiled_file.figures import OutputFigures, checked_output
from npumake.debug.compiled_file.nodes import NodeJudge
from npumake.debug.compiled_file.runs import RUNTIMES, Arrays, CompiledPart, running
from npumake.debug.tensor_agreement import TensorAgreement, output_grid, tensor_agreement
from npumake.engine.exact import ExactSession
from npumake.engine.float_session import float_session
from npumake.engine.ort import Feeds
from npumake.engine.parallel import NUMPY, side_by_side
from npumake.engine.subgraphs import CPU
from npumake.errors import StageError
from npumake.graph import Graph
from npumake.kernels.measure import alignments
from npumake.late import when_used
from npumake.progress import track
from npumake.runtime.isolated import FileRun, RunError

with when_used(  # they compile; only a fault needs them
    "npumake.debug.compiled_file.iree_taps",
    "npumake.debug.compiled_file.constants",
    "npumake.debug.compiled_file.cutting",
):
    from npumake.debug.compiled_file import constants, cutting, iree_taps

IREE = "iree"  # shows no inner tensors
MAX_SAMPLES_PER_PROCESS = 64  # bounds the files in the process's folder
MAX_BYTES_PER_PROCESS = 1 << 28  # of tensors in that folder


class NamedSample(NamedTuple):
    """A sample and its name."""

    name: str
    feed: Feeds


def check_file(
    real: Graph,
    part: CompiledPart,
    samples: Sequence[NamedSample],
    operators: Operators = NO_OPERATORS,
) -> CompiledCheck:
    """Run the file of `part` on all `samples`; `real` is the float model.

    Raises StageError if the file's process ends early, if a node of the file is wrong, or if a
    constant differs in it.
    """
    check = _Check(real, part, operators)
    check.read_back()
    size = _samples_per_process(part.program)
    for start in range(0, len(samples), size):
        check.add(samples[start : start + size])
    return check.result(len(samples))


def _samples_per_process(program: Program) -> int:
    tensors = program.tensors.values()
    size = sum(prod(tensor.shape) * np.dtype(tensor.dtype).itemsize for tensor in tensors)
    return max(1, min(MAX_SAMPLES_PER_PROCESS, MAX_BYTES_PER_PROCESS // max(1, size)))


class _Check:
    def __init__(self, real: Graph, part: CompiledPart, operators: Operators) -> None:
        self._real, self._part, self._operators = real, part.drawn_once(), operators
        self._judge = NodeJudge(part, operators)
        self._runtime = RUNTIMES[part.target.backend]
        self._sums = dict.fromkeys(part.program.outputs, OutputFigures())
        self._hidden: dict[str, None] = {}
        self._elsewhere: dict[str, TensorAgreement] = {}  # outputs that differ from those shown

    def result(self, samples: int) -> CompiledCheck:
        program = self._part.program
        outputs = tuple(
            checked_output(name, self._sums[name], output_grid(program, name))
            for name in program.outputs
        )
        return CompiledCheck(
            self._part.target.name,
            self._runtime.name,
            samples,
            outputs,
            tuple(self._notes()),
            together=tuple(self._hidden),
        )

    def read_back(self) -> None:
        """Raises StageError for a constant that differs in the file."""
        fault = constants.changed_constant(self._part)
        if fault is not None:
            raise StageError(
                f"the compiled file is wrong; the first wrong node is {fault}",
                None,
                self._hint(fault),
            )

    def add(self, samples: Sequence[NamedSample]) -> None:
        """Run these samples, judge their nodes and add their figures. Raises StageError."""
        with running(self._part, [sample.feed for sample in samples]) as runs:
            for (sample, floats, exact), run in zip(
                self._computed(samples), self._watched(runs, samples), strict=True
            ):
                self._compare(sample, floats, exact, run)

    def _computed(
        self, samples: Sequence[NamedSample]
    ) -> Iterator[tuple[NamedSample, Arrays, Arrays]]:
        """Each sample with its outputs in float, and every tensor in exact integers."""
        program = self._part.program
        names = [*dict.fromkeys(n for step in program.instructions for n in step.outputs)]
        exact = ExactSession(program, self._operators, 1, watched=names)
        floats = float_session(self._real, self._operators)

        def computed(sample: NamedSample) -> tuple[NamedSample, Arrays, Arrays]:
            with NUMPY:
                real = dict(zip(program.outputs, floats.run(None, sample.feed), strict=True))
                inner = dict(zip(names, exact.run(names, sample.feed), strict=True))
            return sample, real, {name: sample.feed[name] for name in program.inputs} | inner

        yield from side_by_side(computed, track(samples, "compiled_check", len(samples)))

    def _watched(
        self, runs: Iterator[FileRun], samples: Sequence[NamedSample]
    ) -> Iterator[FileRun]:
        try:
            yield from runs
        except RunError as error:
            raise self._aborted(error, samples) from error

    def _compare(self, sample: NamedSample, floats: Arrays, exact: Arrays, run: FileRun) -> None:
        for name in self._part.program.outputs:
            grid = output_grid(self._part.program, name)
            if not np.isfinite(real_numbers(exact[name], grid)).all():
                raise self._infinite(name, sample)
            agreement = tensor_agreement(exact[name], run.outputs[name], grid)
            if agreement.problem:
                raise self._wrong(name, agreement.problem, sample)
            (aligned,) = alignments(floats[name], [real_numbers(run.outputs[name], grid)])
            dtype = str(run.outputs[name].dtype)
            self._sums[name] = self._sums[name].plus(aligned, agreement, dtype)
        inner = run.inner
        if not inner and not all(_equal(exact[name], x) for name, x in run.outputs.items()):
            inner = iree_taps.tensors_of(self._part, self._tapped_file, sample.feed)
        # Outputs of fused nodes have no place beside the tensors of the nodes as they are written.
        is_apart = bool(inner) and (self._runtime.fuses or not run.inner)
        taps = inner if is_apart else {**run.outputs, **inner}
        self._hidden |= dict.fromkeys(hidden_nodes(self._part.program, taps))
        fault = next(self._judge.run(exact, taps), None)
        if fault is not None:
            raise self._faulty(fault, sample)
        self._hold_outputs(sample, FileRun(run.outputs, inner))

    @cached_property
    def _tapped_file(self) -> bytes:
        return iree_taps.tapped_file(self._part)

    @cached_property
    def _code(self) -> bytes:
        return iree_taps.recompiled_code(self._part)

    def _hold_outputs(self, sample: NamedSample, run: FileRun) -> None:
        """Hold the outputs of the file alone to those that it has beside its inner tensors. What
        nobody watches may be fused and round otherwise; that is noted."""
        for name, output in run.outputs.items():
            other = self._tapped_output(name, run.inner)
            if other is None or _equal(output, other):
                continue
            agreement = tensor_agreement(other, output, output_grid(self._part.program, name))
            if not self._may_fuse():
                error = f"the file alone gives another output than its inner tensors: {agreement}"
                fault = self._lost_constant() or self._maker(name, error)
                raise self._faulty(fault, sample)
            worst = self._elsewhere.get(name, agreement)
            self._elsewhere[name] = max(worst, agreement, key=_size)

    def _may_fuse(self) -> bool:
        """Whether a difference is the runtime's or the compiler's fusion: of an IREE file, if its
        code is what the compiler makes of the model."""
        is_iree = self._part.target.backend == IREE
        return self._runtime.fuses or (is_iree and self._part.data.startswith(self._code))

    def _lost_constant(self) -> Fault | None:
        if self._part.target.backend != IREE:
            return None
        return constants.lost_constant(self._part, self._code)

    def _tapped_output(self, name: str, inner: Arrays) -> np.ndarray | None:
        """The output by the inner tensors: itself, or its codes dequantized."""
        if name in inner:
            return inner[name]
        step = maker_of(self._part.program, name)
        if step is None or step.op != "dequantize" or step.inputs[0] not in inner:
            return None
        (output,) = self._judge.session.execute(step, [inner[step.inputs[0]]])
        return output

    def _notes(self) -> Iterator[str]:
        if self._runtime.note:
            yield f"the file that was run is {self._runtime.note}"
        for name, agreement in self._elsewhere.items():
            yield (
                f"{self._runtime.name} fuses nodes of the file, so its output `{name}` is up to "
                f"{agreement} from the nodes as they are written"
            )

    # -- errors ----------------------------------------------------------------------------

    def _faulty(self, fault: Fault, sample: NamedSample) -> StageError:
        message = f"the compiled file is wrong, fed `{sample.name}`"
        return StageError(f"{message}; the first wrong node is {fault}", None, self._hint(fault))

    def _hint(self, fault: Fault | None) -> str:
        """The way around a wrong kernel: the node in float, or another compiler."""
        program = self._part.program
        step = next((s for s in program.instructions if fault and s.name == fault.node), None)
        if fault is None or step is None or step.op in (CPU, "quantize", "dequantize"):
            return "build for another target, whose compiler is another"
        return f"leave the node to the CPU: `quantization: {{cpu: [{fault.node}]}}`"

    def _wrong(self, name: str, problem: str, sample: NamedSample) -> StageError:
        return self._faulty(self._maker(name, f"output `{name}`: {problem}"), sample)

    def _maker(self, name: str, error: str) -> Fault:
        """The fault of the node that computes an output, in front of its quantization."""
        program = self._part.program
        step = maker_of(program, name)
        while step is not None and step.op in ("dequantize", "quantize"):
            earlier = maker_of(program, step.inputs[0])
            if earlier is None:
                break
            step = earlier
        if step is None:
            return Fault(name, "output", (), error)
        return fault_of(step, self._part.graph, error)

    def _infinite(self, name: str, sample: NamedSample) -> StageError:
        culprit = first_infinite(self._part.program, sample.feed, self._operators)
        message = f"output `{name}` is NaN or infinite in the integer engine, fed `{sample.name}`"
        return StageError(f"{message}; {culprit}")

    def _aborted(self, error: RunError, samples: Sequence[NamedSample]) -> StageError:
        during = "while it is opened" if error.run is None else f"fed `{samples[error.run].name}`"
        fault = cutting.first_ending(self._part, samples[error.run or 0].feed)
        first = "no node alone ends it" if fault is None else f"the first node that does is {fault}"
        log = "".join(f"\n  {line}" for line in error.lines)
        message = f"the compiled file in {self._runtime.name}: {error.what}, {during}; {first}"
        return StageError(message + log, None, self._hint(fault))


def _equal(a: np.ndarray, b: np.ndarray) -> bool:
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    return np.array_equal(a, b, equal_nan=a.dtype.kind == "f")


def _size(agreement: TensorAgreement) -> float:
    return agreement.codes or agreement.relative or 0.0
