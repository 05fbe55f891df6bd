"""The figures of one model on one target: for the summary of a pull request."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from npumake.debug.compared import Comparison
from npumake.evaluate.figures import EvaluationResult
from npumake.kernels.measure import worst
from npumake.perf.latency import file_latency
from npumake.project.files import model_bytes
from npumake.targets.reader import read_target
from npumake.targets.target import Target


@dataclass(frozen=True)
class ModelFigures:
    """None if a figure was not measured.

    `accuracy` is that of the last evaluated artifact, in the unit of `metric`; larger is better.
    `cosine` is the smallest of the outputs, quantized against float. `size` is that of the compiled
    file in bytes, `latency_ms` its estimate; `is_bound`: a lower bound. `int16` is the share of the
    multiply-accumulates that read int16.
    """

    accuracy: float | None = None
    metric: str = ""
    cosine: float | None = None
    size: int | None = None
    latency_ms: float | None = None
    is_bound: bool = False
    cpu_nodes: int | None = None
    int16: float | None = None


def model_figures(target: str, file: Callable[[str], Path | None]) -> ModelFigures:
    """`file` finds the artifact of a stage; None if there is none. Raises PipelineError for a
    damaged artifact."""
    figures = ModelFigures()
    if scores := file("evaluation"):
        rows = EvaluationResult.load(scores).rows
        figures = replace(figures, accuracy=rows[-1].value, metric=rows[-1].metric)
    if compared := file("comparison"):
        figures = _with_closeness(figures, Comparison.load(compared))
    if compiled := file("compiled"):
        figures = replace(figures, size=compiled.stat().st_size)
        if file("handover") is None:  # else the vendor's file, without an estimate
            figures = _with_latency(figures, compiled, read_target(target))
    return figures


def _with_closeness(figures: ModelFigures, comparison: Comparison) -> ModelFigures:
    on_cpu = sum(row.subgraph is None for row in comparison.of_graph)
    min_cosine = worst(output.cosine for output in comparison.outputs)
    cosine = min_cosine if comparison.samples else None
    return replace(figures, cpu_nodes=on_cpu, cosine=cosine, int16=comparison.int16)


def _with_latency(figures: ModelFigures, compiled: Path, target: Target) -> ModelFigures:
    latency = file_latency(model_bytes(compiled), target)
    if latency is None:
        return figures
    return replace(figures, latency_ms=latency.milliseconds, is_bound=latency.is_bound)
