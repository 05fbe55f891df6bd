"""Weight clipping: weight scales with the least mean square error.

The grid of a weight reaches its largest magnitude, s = max|w| / 127. A smaller scale r * s
saturates the few largest weights and rounds all others finer:

    r = argmin over r of  sum (w - r s clip(rint(w / (r s))))^2        r in 1, 0.99 ... 0.5

per channel, or for all channels if the chip has one scale; r is 1 or 1/2 for power-of-two scales.
The lower bound from the bias (precision.grids.MAX_BIAS) holds.
"""

from __future__ import annotations

import numpy as np

from npumake.graph import Graph
from npumake.graph.qdq import grid_behind
from npumake.quant.precision.grids import MAX_BIAS
from npumake.quant.precision.linear_layers import LinearLayer, quantized_layers, set_scale
from npumake.targets.target import WeightGrid

CLIP_RATIOS = np.linspace(1.0, 0.5, 51)
POWER_OF_TWO_RATIOS = CLIP_RATIOS[[0, -1]]


def clip_weights(calibrated: Graph, scheme: WeightGrid) -> Graph:
    """A copy of a graph with Q/DQ on float weights, with other weight scales."""
    graph = calibrated.copy()
    for layer in quantized_layers(graph):
        set_scale(graph, layer, _clipped_scale(layer, scheme))
    graph.drop_unused()
    return graph


def _clipped_scale(layer: LinearLayer, scheme: WeightGrid) -> np.ndarray:
    """float32 in the shape of the present scale."""
    weights, inputs = grid_behind(layer.node.inputs[1]), grid_behind(layer.x)
    assert weights is not None
    assert inputs is not None
    rows = layer.kernel().reshape(layer.channels, -1)
    scale = np.broadcast_to(weights.scale.astype(np.float64), layer.channels)
    smallest = np.abs(layer.bias()) / (float(inputs.scale.item()) * MAX_BIAS)
    limits = np.iinfo(weights.zero_point.dtype)
    ratios = POWER_OF_TWO_RATIOS if scheme.power_of_two else CLIP_RATIOS
    errors = np.stack([square_errors(rows, r * scale, limits) for r in ratios])
    errors[ratios[:, None] * scale < smallest] = np.inf
    errors[0] = np.minimum(
        errors[0], np.finfo(np.float64).max
    )  # the present scale is always allowed
    if not scheme.per_channel:
        errors = np.broadcast_to(errors.sum(axis=1, keepdims=True), errors.shape)
    best = ratios[np.argmin(errors, axis=0)] * scale
    return best[: weights.scale.size].astype(np.float32)


def square_errors(rows: np.ndarray, scale: np.ndarray, limits: np.iinfo) -> np.ndarray:
    """The summed square error of each row (rows, n) on the grid of its scale (rows,)."""
    steps = rows / scale[:, None]
    return np.square(steps - np.clip(np.rint(steps), limits.min, limits.max)).sum(1) * scale**2
