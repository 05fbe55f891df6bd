"""Suggestions: YAML that meets a gate, tried first.

    promotions   the first one, two and three of the nodes with the largest losses: to int16, then
                 to the CPU; nodes on the CPU: to the NPU

The first trial that meets the gate wins; else the best that improves the figure.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import yaml

from npumake.errors import GraphError, ProjectError
from npumake.evaluate.verdict import MAX_NODES, GateSuggestion
from npumake.graph import Graph
from npumake.project.sections import Quantization
from npumake.quant.precision.precision_candidates import Promoted, candidates, promoted, section
from npumake.targets.target import Target

PROMOTIONS: tuple[Promoted, ...] = ("int16", "cpu")
Measure = Callable[[Quantization], float]  # the larger, the better


def promotions(
    graph: Graph, target: Target, quantization: Quantization, worst: Sequence[str]
) -> Iterator[Quantization]:
    """Trials with higher precision; `worst` are names of nodes, largest loss first."""
    for kind in PROMOTIONS:
        promotable = _candidates(graph, target, quantization, kind)
        names = [name for name in worst if name in promotable][:MAX_NODES]
        for count in range(1, len(names) + 1):
            yield promoted(graph, target, quantization, names[:count], kind)


def demands(quantization: Quantization, on_cpu: Sequence[str]) -> Iterator[Quantization]:
    """Trials that request the NPU for nodes on the CPU."""
    for count in range(1, min(len(on_cpu), MAX_NODES) + 1):
        names = on_cpu[:count]
        cpu = tuple(name for name in quantization.cpu if name not in names)
        yield replace(quantization, npu=(*quantization.npu, *names), cpu=cpu)


def best_suggestion(
    measure: Measure,
    quantization: Quantization,
    candidates: Iterator[Quantization],
    threshold: float,
) -> GateSuggestion | None:
    """The first trial that reaches `threshold`, else the best; None if none helps."""
    before = measure(quantization)
    best, winner = before, None
    for candidate in candidates:
        after = _score(measure, candidate)
        if after > best:
            best, winner = after, candidate
        if winner is not None and best >= threshold:
            break
    if winner is None:
        return None
    text = yaml.safe_dump({"quantization": section(winner)}, sort_keys=False, allow_unicode=True)
    return GateSuggestion(text, before, best, best >= threshold)


def _score(measure: Measure, candidate: Quantization) -> float:
    """The figure of a trial; -inf if the chip refuses it."""
    try:
        return measure(candidate)
    except (GraphError, ProjectError):
        return -math.inf


def _candidates(
    graph: Graph, target: Target, quantization: Quantization, kind: Promoted
) -> dict[str, int]:
    """Empty if the chip has no higher precision."""
    try:
        return candidates(graph, target, quantization, kind)
    except ProjectError:
        return {}
