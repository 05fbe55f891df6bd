"""Tensors with a wrong scale, as the rest of the model shows.

Two scale checks (scale_consistency) that agree on a factor other than 1 prove a scale wrong. With
one check alone, any scale in it may be the wrong one. Each is then corrected in turn, and the
correction with the smallest total misfit wins:

    total misfit = sum of log2(reach)**2 over the activations (range_fit)

A wrong scale shifts the ranges of every tensor behind it, so only the right correction makes them
fit. The upper end of the tested tensor's own grid does not count as a clamp here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from npumake.debug.diagnosis.bias_scale_checks import is_one
from npumake.debug.diagnosis.range_fit import Fit, fits
from npumake.debug.diagnosis.scale_consistency import (
    Repair,
    ScaleCheck,
    scale_checks,
    with_explicit_clamps,
)
from npumake.debug.sensitivity import ModelUnderTest
from npumake.graph.qdq import QDQ_OPERATORS, dequantizers_of, grid_of

MAX_LOG2_REACH = 6.0  # larger misfits count no more


def wrong_scales(model: ModelUnderTest) -> dict[str, float]:
    """Calibration node -> the factor by which its scale is wrong. Raises GraphError."""
    checks = scale_checks(model.calibrated, model.nodes)
    return {
        node.name: checks[node.name][0].factor
        for node in model.nodes
        if node.name in checks and _is_wrong(model, node.name, checks[node.name])
    }


def _is_wrong(model: ModelUnderTest, name: str, checks: Sequence[ScaleCheck]) -> bool:
    first, *others = checks
    if is_one(first.factor) or any(not is_one(check.factor / first.factor) for check in others):
        return False
    if all(check.is_average for check in checks):
        return False
    return bool(others) or _is_best(model, Repair(name, first.factor), first.others)


def _is_best(model: ModelUnderTest, repair: Repair, others: Sequence[Repair]) -> bool:
    misfit = total_misfit(with_repair(model, repair), repair.name)
    return all(misfit < total_misfit(with_repair(model, other), repair.name) for other in others)


def with_repair(model: ModelUnderTest, repair: Repair) -> ModelUnderTest:
    """A copy of the model with one scale corrected."""
    graph = model.calibrated.copy()
    (node,) = (node for node in graph.nodes(*QDQ_OPERATORS) if node.name == repair.name)
    grid = grid_of(node)
    assert grid is not None  # a check compares it
    right = (grid.scale * repair.factor).astype(grid.scale.dtype)
    value = graph.constant(f"{repair.name}_repaired", right)
    for neighbor in (node, *dequantizers_of(node.outputs[0])):
        graph.set_inputs(neighbor, {1: value})
    return replace(model, calibrated=graph, cache={})


def total_misfit(model: ModelUnderTest, uncertain: str) -> float:
    """Sum of log2(reach)**2 over the activations; `uncertain` is the tensor under test. Raises
    GraphError."""
    model = with_explicit_clamps(model, uncertain)
    computed = {node.name for node in model.nodes if node.kind == "activation"}
    return sum(_off(fit) ** 2 for name, fit in fits(model).items() if name in computed)


def _off(fit: Fit) -> float:
    return min(abs(math.log2(fit.reach)), MAX_LOG2_REACH) if fit.reach > 0.0 else MAX_LOG2_REACH
