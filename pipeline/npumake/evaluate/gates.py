"""Gates: the limits of a project, and the measured values.

{metric: top1, max_drop: 1.0}   float minus the last evaluated artifact, in points
{cosine: 0.99}                  of the worst output, over the calibration samples
{max_cpu_nodes: 0}              nodes that the NPU does not run
{max_latency_ms: 10}            of one frame, estimated or a lower bound (npumake.perf)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from npumake.errors import ProjectError, Route, did_you_mean
from npumake.evaluate.figures import Figures
from npumake.project.sections import Gate


class BuildFigures(NamedTuple):
    """The measured values of a build. `cosine` is None without samples, `latency_ms` without
    published figures of the target."""

    scores: Sequence[Figures]  # the float model first
    cosine: float | None
    cpu_nodes: int
    latency_ms: float | None = None
    latency_is_bound: bool = False  # a lower bound: compute only
    latency_between: tuple[float, float] | None = None  # of a fitted estimate


class GateCondition(NamedTuple):
    """A gate as `measured` >= `threshold`; `what` is a sentence for the user."""

    number: int  # of the gate, counted from 0
    kind: str
    metric: str | None
    what: str
    threshold: float
    measured: float

    @property
    def met(self) -> bool:
        return self.measured >= self.threshold


def gate_condition(gate: Gate, index: int, build: BuildFigures) -> GateCondition:
    """The condition of a gate. Raises ProjectError for a gate of no kind or of several, and for a
    missing measurement."""
    kinds = [kind for kind, keys in KEYS.items() if any(_of(gate, key) is not None for key in keys)]
    if len(kinds) != 1 or any(_of(gate, key) is None for key in KEYS[kinds[0]]):
        hint = "one of  {metric: top1, max_drop: 1.0}  {cosine: 0.99}  {max_cpu_nodes: 0}"
        hint += "  {max_latency_ms: 10}"
        raise ProjectError("not a gate", Route(f"gates.{index}"), hint)
    return CONDITIONS[kinds[0]](gate, index, build)


def _drop(gate: Gate, index: int, build: BuildFigures) -> GateCondition:
    where = Route(f"gates.{index}.metric")
    if len(build.scores) < 2:
        hint = "evaluate an artifact besides float"
        raise ProjectError("`max_drop` needs an `evaluation:` section", where, hint)
    first, last = build.scores[0], build.scores[-1]
    name, max_drop = str(gate.metric), float(gate.max_drop or 0.0)
    if name not in first.by_name:
        hint = did_you_mean(name, first.by_name)
        raise ProjectError(f"the evaluation has no `{name}`", where, hint)
    real, quantized = first.by_name[name], last.by_name[name]
    message = (
        f"{name} of the {last.artifact} model is {quantized:.6g}, {real - quantized:.6g} below "
        f"the float model's {real:.6g}; at most {max_drop:g} is allowed"
    )
    return GateCondition(index, "metric", name, message, real - max_drop, quantized)


def _cosine(gate: Gate, index: int, build: BuildFigures) -> GateCondition:
    threshold = float(gate.cosine or 0.0)
    if build.cosine is None:
        hint = "add  data: {'*': {files: ...}}"
        raise ProjectError("no samples to compare", Route(f"gates.{index}.cosine"), hint)
    message = f"the worst output has a cosine of {build.cosine:.6f}; the gate is {threshold:g}"
    return GateCondition(index, "cosine", None, message, threshold, build.cosine)


def _cpu_nodes(gate: Gate, index: int, build: BuildFigures) -> GateCondition:
    max_nodes = gate.max_cpu_nodes or 0
    message = f"{build.cpu_nodes} nodes run on the CPU; at most {max_nodes} are allowed"
    return GateCondition(
        index, "cpu_nodes", None, message, -float(max_nodes), -float(build.cpu_nodes)
    )


def _latency(gate: Gate, index: int, build: BuildFigures) -> GateCondition:
    max_ms = float(gate.max_latency_ms or 0.0)
    if build.latency_ms is None:
        hint = "its vendor publishes neither peak nor bandwidth; see `npumake perf MODEL`"
        where = Route(f"gates.{index}.max_latency_ms")
        raise ProjectError("the latency on this target is unknown", where, hint)
    takes = "at least" if build.latency_is_bound else "an estimated"  # a bound decides too
    time = f"{build.latency_ms:.4g} ms{_interval(build)}"
    message = f"a frame takes {takes} {time}; at most {max_ms:g} is allowed"
    return GateCondition(index, "latency", None, message, -max_ms, -build.latency_ms)


def _interval(build: BuildFigures) -> str:
    if build.latency_is_bound:
        return " (compute only)"
    if build.latency_between is None:
        return ""
    low, high = build.latency_between
    return f" ({low:.3g} to {high:.3g})"


def _of(gate: Gate, key: str) -> float | str | None:
    value: float | str | None = getattr(gate, key)
    return value


KEYS: Mapping[str, tuple[str, ...]] = {
    "metric": ("metric", "max_drop"),
    "cosine": ("cosine",),
    "cpu_nodes": ("max_cpu_nodes",),
    "latency": ("max_latency_ms",),
}
CONDITIONS: Mapping[str, Callable[[Gate, int, BuildFigures], GateCondition]] = {
    "metric": _drop,
    "cosine": _cosine,
    "cpu_nodes": _cpu_nodes,
    "latency": _latency,
}
