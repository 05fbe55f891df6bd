"""Checks of one tensor's scale against the other scales of a quantized model.

    a bias behind x      was quantized for scale_x = scale_b / scale_w
    data movement of x   keeps its input's scale; so do averages in TFLite

A check gives the factor by which the scale would have to change to be consistent. A factor of 1
confirms the scale. The ends of a confirmed grid that starts at zero are then part of the function:
TFLite uses them in place of Relu and Relu6. With another factor either the tensor's scale is wrong
or one of the other scales in the check, which it names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from npumake.debug.calibration_nodes import CalibrationNode
from npumake.debug.diagnosis.bias_scale_checks import bias_factors, dequantizer, is_one
from npumake.debug.diagnosis.range_fit import KEEPING, shares_grid
from npumake.debug.sensitivity import ModelUnderTest
from npumake.engine.fusion import ABSORBING, Bounds, absorbed, bounds, is_clamp
from npumake.graph import Graph, Node, declare, only_consumer, producer, shape
from npumake.graph.qdq import QUANTIZE
from npumake.quant.qdq.brought_grids import EXACT_MOVES

SAME_GRID = EXACT_MOVES | {"AveragePool", "GlobalAveragePool"}  # averages as TFLite quantizes them
CLAMPED_BY_GRID = ABSORBING - KEEPING  # an average does not leave its input's range


class Repair(NamedTuple):
    """A correction: the scale of the node `name` (a Q with its DQ, or a DQ) times `factor`."""

    name: str
    factor: float


class ScaleCheck(NamedTuple):
    """`factor` would make the tensor's scale consistent; so would any one of `others` instead.
    `is_average`: an average may have its own scale, so this check alone proves nothing."""

    factor: float
    others: tuple[Repair, ...] = ()
    is_average: bool = False


ScaleChecks = Mapping[str, Sequence[ScaleCheck]]  # by name of calibration node


class _ImplicitClamp(NamedTuple):
    maker: Node
    bounds: Bounds


def scale_checks(graph: Graph, nodes: Iterable[CalibrationNode]) -> ScaleChecks:
    """The checks of every tensor that has any; empty if no bias is quantized."""
    activations = {
        source_node.real: source_node for source_node in nodes if source_node.kind == "activation"
    }
    checks: dict[str, list[ScaleCheck]] = {
        source_node.name: [] for source_node in activations.values()
    }
    for node, factors in bias_factors(graph):
        maker = dequantizer(node.inputs[0])
        source_node = None if maker is None else activations.get(str(maker.outputs[0].name))
        if source_node is not None:
            checks[source_node.name].append(_bias(node, float(np.median(factors))))
    if not any(checks.values()):
        return {}
    values = graph.values()
    for target_node in activations.values():
        mover = producer(values[target_node.tensor])
        if mover is None or mover.op_type not in SAME_GRID or mover.inputs[0] is None:
            continue
        source = activations.get(str(mover.inputs[0].name))
        if source is not None and source.scale.size == target_node.scale.size == 1:
            factor = float(target_node.scale.item() / source.scale.item())
            is_average = mover.op_type not in EXACT_MOVES
            first, second = Repair(target_node.name, 1 / factor), Repair(source.name, factor)
            checks[source.name].append(ScaleCheck(factor, (first,), is_average))
            checks[target_node.name].append(ScaleCheck(1 / factor, (second,), is_average))
    return {name: evidence for name, evidence in checks.items() if evidence}


def _bias(node: Node, factor: float) -> ScaleCheck:
    """The check by a node with quantized weights and a quantized bias."""
    repairs = zip(node.inputs[1:3], (factor, 1 / factor), strict=True)
    makers = [(dequantizer(value), by) for value, by in repairs]
    others = (Repair(str(maker.name), by) for maker, by in makers if maker is not None)
    return ScaleCheck(factor, tuple(others))


def unused_negative_codes(graph: Graph, nodes: Iterable[CalibrationNode]) -> dict[str, str]:
    """Node -> remark, for nodes whose clamp outputs no negative values but whose asymmetric grid
    has quantized values for them."""
    values, remarks = graph.values(), dict[str, str]()
    for node in nodes:
        clamp = producer(values[node.tensor])
        if clamp is None or not is_clamp(clamp) or bounds(clamp).low != 0.0 or node.scale.size > 1:
            continue
        low, high = (float(np.reshape(limit, -1)[0]) for limit in node.limits)
        is_symmetric = abs(low + high) <= 2 * float(node.scale.item())
        if low < 0.0 and not is_symmetric and not shares_grid(values, node):
            unused = f"{-low / (high - low):.0%} of its quantized values are negative"
            remarks |= dict.fromkeys(node.owners, f"its output is never below zero, {unused}")
    return remarks


def with_explicit_clamps(model: ModelUnderTest, uncertain: str = "") -> ModelUnderTest:
    """A copy of the model where grid ends that act as Relu or Relu6 are explicit Clip nodes, so
    that leaving out a Q/DQ pair does not remove the clamp. The upper end of the tensor
    `uncertain` does not become a clamp."""
    checks = scale_checks(model.calibrated, model.nodes)
    if not checks:
        return model
    graph = model.calibrated.copy()
    quantizers = {str(node.name): node for node in graph.nodes(QUANTIZE)}
    for place in model.nodes:
        own_checks = () if place.name == uncertain else checks.get(place.name, ())
        is_confirmed = any(is_one(check.factor) for check in own_checks)
        clamp = _implicit_clamp(quantizers[place.name], place, is_confirmed)
        if clamp is not None:
            _insert_clamp(graph, quantizers[place.name], place, clamp)
    graph.drop_unused()
    return replace(model, calibrated=graph, cache={})


def _implicit_clamp(
    quantizer: Node, node: CalibrationNode, is_confirmed: bool
) -> _ImplicitClamp | None:
    """The node that computes the quantized tensor, and the interval its grid clamps to."""
    value = quantizer.inputs[0]
    last = None if value is None else producer(value)
    if node.kind == "weight" or node.scale.size > 1 or last is None or not last.inputs:
        return None
    read = last.inputs[0]
    maker = None if read is None else producer(read)
    before = last if last.op_type in CLAMPED_BY_GRID else maker
    if before is None or only_consumer(last.outputs[0]) is not quantizer:
        return None
    clamp = absorbed(before)
    if before.op_type not in CLAMPED_BY_GRID or (last is not before and clamp is not last):
        return None
    low, high = (float(np.reshape(limit, -1)[0]) for limit in node.limits)
    own = bounds(clamp)
    if low != 0.0:  # a grid that acts as a clamp acts as a Relu at least
        return None
    highs = [x for x in (own.high, high if is_confirmed else None) if x is not None]
    meant = Bounds(max(own.low or 0.0, 0.0), min(highs, default=None))
    return None if meant == own else _ImplicitClamp(before, meant)


def _insert_clamp(
    graph: Graph, quantizer: Node, node: CalibrationNode, clamp: _ImplicitClamp
) -> None:
    """Insert the Clip, replacing an existing clamp."""
    limits = [
        None if limit is None else graph.constant(f"{node.name}_{end}", np.array(limit, np.float32))
        for end, limit in clamp.bounds._asdict().items()
    ]
    last = producer(quantizer.inputs[0])  # type: ignore[arg-type]
    inputs = [clamp.maker.outputs[0], *limits]
    clamped = graph.insert("Clip", inputs, f"{node.tensor}_meant", last)
    declare(clamped, shape(clamp.maker.outputs[0]), clamp.maker.outputs[0])
    graph.set_inputs(quantizer, {0: clamped})
    if last is not None and last is not clamp.maker:
        graph.remove(last)
