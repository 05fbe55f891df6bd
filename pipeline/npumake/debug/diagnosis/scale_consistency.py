"""Witnesses: what the rest of a model that brings its grids says of the scale of a tensor.

    a bias behind x    was made for one scale of x: scale_b / scale_w
    what only moves x  gives the codes that it was given, on the grid they came on; an average too

A witness says a factor: what the scale would have to be multiplied by. One that says 1 acquits the
tensor, and then the end of a grid that starts at zero is meant, as is that start: TFLite lets them
stand for Relu6 and Relu. Another factor may be the tensor's fault or the witness's own: it tells
which of its scales would have to be repaired instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from npumake.debug.calibration_nodes import CalibrationNode
from npumake.debug.diagnosis.bias_scale_checks import bias_factors, dequantizer, is_one
from npumake.debug.diagnosis.range_fit import KEEPING, is_handed_on
from npumake.debug.sensitivity import ModelUnderTest
from npumake.engine.fusion import ABSORBING, Bounds, absorbed, bounds, is_clamp
from npumake.engine.grids import Q
from npumake.graph import Graph, Node, declare, only_consumer, producer, shape
from npumake.quant.qdq.brought_grids import EXACT_MOVES

ALIKE = EXACT_MOVES | {"AveragePool", "GlobalAveragePool"}  # the latter as TFLite has them
CLAMPED = ABSORBING - KEEPING  # an average leaves no interval


class Repair(NamedTuple):
    """What a scale should be times: that of a Q and its DQ, or of a DQ alone, by name."""

    name: str
    factor: float


class Witness(NamedTuple):
    """`others` would agree with the tensor as it is, each alone. An average may have a grid of its
    own, so that it does not convict alone."""

    factor: float
    others: tuple[Repair, ...] = ()
    is_average: bool = False


Witnesses = Mapping[str, Sequence[Witness]]  # by the names of calibration nodes


class _Clamped(NamedTuple):
    maker: Node
    bounds: Bounds


def witnesses(graph: Graph, nodes: Iterable[CalibrationNode]) -> Witnesses:
    """Of the tensors that have any; empty where no bias lies on a grid."""
    activations = {one.real: one for one in nodes if one.kind == "activation"}
    found: dict[str, list[Witness]] = {one.name: [] for one in activations.values()}
    for node, factors in bias_factors(graph):
        maker = dequantizer(node.inputs[0])
        one = None if maker is None else activations.get(str(maker.outputs[0].name))
        if one is not None:
            found[one.name].append(_bias(node, float(np.median(factors))))
    if not any(found.values()):
        return {}
    values = graph.values()
    for made in activations.values():
        mover = producer(values[made.tensor])
        if mover is None or mover.op_type not in ALIKE or mover.inputs[0] is None:
            continue
        given = activations.get(str(mover.inputs[0].name))
        if given is not None and given.scale.size == made.scale.size == 1:
            factor = float(made.scale.item() / given.scale.item())
            is_average = mover.op_type not in EXACT_MOVES
            first, second = Repair(made.name, 1 / factor), Repair(given.name, factor)
            found[given.name].append(Witness(factor, (first,), is_average))
            found[made.name].append(Witness(1 / factor, (second,), is_average))
    return {name: heard for name, heard in found.items() if heard}


def _bias(node: Node, factor: float) -> Witness:
    """Of a node whose weights and whose bias are on grids."""
    repairs = zip(node.inputs[1:3], (factor, 1 / factor), strict=True)
    makers = [(dequantizer(value), by) for value, by in repairs]
    others = (Repair(str(maker.name), by) for maker, by in makers if maker is not None)
    return Witness(factor, tuple(others))


def shifted(graph: Graph, nodes: Iterable[CalibrationNode]) -> dict[str, str]:
    """A remark on whom a clamp keeps from making what is less than zero, on a grid that goes there
    but has not zero in its middle."""
    values, found = graph.values(), dict[str, str]()
    for one in nodes:
        clamp = producer(values[one.tensor])
        if clamp is None or not is_clamp(clamp) or bounds(clamp).low != 0.0 or one.scale.size > 1:
            continue
        low, high = (float(np.reshape(limit, -1)[0]) for limit in one.limits)
        is_symmetric = abs(low + high) <= 2 * float(one.scale.item())
        if low < 0.0 and not is_symmetric and not is_handed_on(values, one):
            unused = f"{-low / (high - low):.0%} of its codes are for less"
            found |= dict.fromkeys(one.owners, f"nothing below zero is made, {unused}")
    return found


def as_meant(patient: ModelUnderTest, doubted: str = "") -> ModelUnderTest:
    """The same, where the ends of grids that are part of the function are clamps of their own: no
    pair that is left out takes one with it. Of a tensor in doubt the upper end is none."""
    heard = witnesses(patient.calibrated, patient.nodes)
    if not heard:
        return patient
    graph = patient.calibrated.copy()
    quantizers = {str(node.name): node for node in graph.nodes(Q)}
    for one in patient.nodes:
        said = () if one.name == doubted else heard.get(one.name, ())
        is_acquitted = any(is_one(each.factor) for each in said)
        found = _clamped(quantizers[one.name], one, is_acquitted)
        if found is not None:
            _clamp(graph, quantizers[one.name], one, found)
    graph.drop_unused()
    return replace(patient, calibrated=graph, remembered={})


def _clamped(quantizer: Node, one: CalibrationNode, is_acquitted: bool) -> _Clamped | None:
    """The node that computes what is quantized, and the interval that it is meant to lie in."""
    given = quantizer.inputs[0]
    last = None if given is None else producer(given)
    if one.kind == "weight" or one.scale.size > 1 or last is None or not last.inputs:
        return None
    read = last.inputs[0]
    maker = None if read is None else producer(read)
    before = last if last.op_type in CLAMPED else maker
    if before is None or only_consumer(last.outputs[0]) is not quantizer:
        return None
    clamp = absorbed(before)
    if before.op_type not in CLAMPED or (last is not before and clamp is not last):
        return None
    low, high = (float(np.reshape(limit, -1)[0]) for limit in one.limits)
    own = bounds(clamp)
    if low != 0.0:  # what stands for a clamp stands for a Relu at least
        return None
    highs = [x for x in (own.high, high if is_acquitted else None) if x is not None]
    meant = Bounds(max(own.low or 0.0, 0.0), min(highs, default=None))
    return None if meant == own else _Clamped(before, meant)


def _clamp(graph: Graph, quantizer: Node, one: CalibrationNode, found: _Clamped) -> None:
    """In place of a clamp that is there."""
    limits = [
        None if limit is None else graph.constant(f"{one.name}_{end}", np.array(limit, np.float32))
        for end, limit in found.bounds._asdict().items()
    ]
    last = producer(quantizer.inputs[0])  # type: ignore[arg-type]
    inputs = [found.maker.outputs[0], *limits]
    clamped = graph.insert("Clip", inputs, f"{one.tensor}_meant", last)
    declare(clamped, shape(found.maker.outputs[0]), found.maker.outputs[0])
    graph.set_inputs(quantizer, {0: clamped})
    if last is not None and last is not found.maker:
        graph.remove(last)
