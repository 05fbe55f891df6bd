"""Scales of one model that contradict each other; checked without samples.

a bias is added to sums of x * w            scale of b = scale of x * scale of w, per channel
a tensor is read with the scale it has      scale of DQ = scale of Q
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from npumake.debug.calibration_nodes import CalibrationNode, whole
from npumake.engine.rules import RULES
from npumake.graph import Graph, Node, Value, producer
from npumake.graph.qdq import dequantizer_of, grid_of
from npumake.quant.precision.placement import SAME_GRID_OPERATORS
from npumake.quant.qdq.insert import groups_of_scales

SCALE_TOLERANCE = 0.01  # float32 scales agree to 1e-6


def bias_scale_contradictions(graph: Graph, nodes: Iterable[CalibrationNode]) -> dict[str, str]:
    """Node name -> remark, for every node with contradicting scales, in graph order."""
    remarks: dict[str, str] = {}
    remark = "the scale of its bias is {:.4g} times that of its input times its weights'"
    for node, factors in bias_factors(graph):
        remarks |= _remark(str(whole(node).name), factors, remark)
    values = graph.values()
    for place in nodes:
        remark = f"`{place.tensor}` is read with {{:.4g}} times the scale it is written with"
        factors = _ratio(_scale(values[place.real]), place.scale)
        for owner in place.owners:
            remarks |= _remark(owner, factors, remark)
    return remarks


def bias_factors(graph: Graph) -> Iterator[tuple[Node, np.ndarray]]:
    """scale_b / (scale_x * scale_w), per channel, of every node whose three scales are known."""
    for node in graph.nodes():
        if node.domain or node.op_type not in RULES or 2 not in RULES[node.op_type].weights:
            continue
        s_x, s_w, s_b = (_scale(v) for v in (*node.inputs, None)[:3])
        if s_x is not None and s_w is not None and s_b is not None:
            meant = s_x.ravel() * np.tile(s_w.ravel(), groups_of_scales(node))
            yield node, _ratio(s_b.ravel(), meant)


def dequantizer(value: Value | None) -> Node | None:
    """The DequantizeLinear that produces the value, looking through data movement."""
    while value is not None and (maker := producer(value)) is not None:
        if maker.op_type not in SAME_GRID_OPERATORS:
            break
        value = maker.inputs[0]
    return dequantizer_of(value)


def is_one(factor: float) -> bool:
    return abs(factor - 1.0) <= SCALE_TOLERANCE


def _remark(node: str, factors: np.ndarray, remark: str) -> dict[str, str]:
    """The factor of most channels, else of the channel with the largest deviation."""
    if not is_one(float(np.median(factors))):
        return {node: remark.format(float(np.median(factors)))}
    furthest = int(np.argmax(np.abs(factors - 1.0)))
    if is_one(float(factors[furthest])):
        return {}
    return {node: remark.format(float(factors[furthest])) + f" in channel {furthest}"}


def _ratio(scale: np.ndarray | None, other: np.ndarray) -> np.ndarray:
    """Per channel; 1 without a scale to compare."""
    return np.ones(1) if scale is None else np.atleast_1d(scale.astype(np.float64) / other)


def _scale(value: Value | None) -> np.ndarray | None:
    maker = dequantizer(value)
    grid = None if maker is None else grid_of(maker)
    return None if grid is None else grid.scale
