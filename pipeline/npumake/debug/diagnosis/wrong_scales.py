"""Convicted: the tensors whose own scale is the wrong one, where the rest of the model says so.

Witnesses (scale_consistency) who all say one other factor convict a tensor when there are
two of them. A lone one may be wrong itself: what contradicts is put right, one scale at a time, and
that one was wrong after which the model is the least astray:

    astray    sum of log2(reach)**2 over the grids of what is computed: how far they are from those
              that the numbers on them ask for (npumake.debug.diagnosis.range_fit)

for a wrong scale leads all behind it astray. The end of the tensor's own grid is no clamp then, for
that is what is in doubt.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from npumake.debug.diagnosis.bias_scale_checks import is_one
from npumake.debug.diagnosis.range_fit import Fit, fits
from npumake.debug.diagnosis.scale_consistency import Repair, Witness, as_meant, witnesses
from npumake.debug.sensitivity import ModelUnderTest
from npumake.engine.grids import DQ, Q
from npumake.graph import Node, array

MOST = 6.0  # a grid that is further off tells no more


def convicted(patient: ModelUnderTest) -> dict[str, float]:
    """The factor that each is off by, by its calibration node. Raises GraphError."""
    heard = witnesses(patient.calibrated, patient.nodes)
    return {
        one.name: heard[one.name][0].factor
        for one in patient.nodes
        if one.name in heard and _is_wrong(patient, one.name, heard[one.name])
    }


def _is_wrong(patient: ModelUnderTest, name: str, heard: Sequence[Witness]) -> bool:
    first, *others = heard
    if is_one(first.factor) or any(not is_one(one.factor / first.factor) for one in others):
        return False
    if all(one.is_average for one in heard):
        return False
    return bool(others) or _is_best(patient, Repair(name, first.factor), first.others)


def _is_best(patient: ModelUnderTest, repair: Repair, others: Sequence[Repair]) -> bool:
    least = astray(with_repair(patient, repair), repair.name)
    return all(least < astray(with_repair(patient, other), repair.name) for other in others)


def with_repair(patient: ModelUnderTest, repair: Repair) -> ModelUnderTest:
    """The same, one scale put right."""
    graph = patient.calibrated.copy()
    (node,) = (node for node in graph.nodes(Q, DQ) if node.name == repair.name)
    scale = array(node.inputs[1])
    assert scale is not None  # that a witness contradicts
    right = (scale * repair.factor).astype(scale.dtype)
    value = graph.constant(f"{repair.name}_repaired", right)
    for each in (node, *_readers(node)):
        graph.set_inputs(each, {1: value})
    return replace(patient, calibrated=graph, remembered={})


def astray(patient: ModelUnderTest, doubted: str) -> float:
    """Raises GraphError."""
    patient = as_meant(patient, doubted)
    computed = {one.name for one in patient.nodes if one.kind == "activation"}
    return sum(_off(fit) ** 2 for name, fit in fits(patient).items() if name in computed)


def _off(fit: Fit) -> float:
    return min(abs(math.log2(fit.reach)), MOST) if fit.reach > 0.0 else MOST


def _readers(node: Node) -> list[Node]:
    """The DQ of a Q."""
    return [use.node for use in node.outputs[0].uses()] if node.op_type == Q else []
