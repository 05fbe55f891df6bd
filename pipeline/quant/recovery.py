"""Recovery: accuracy brought back, switch by switch, in this order.

equalize, migrate    the float model rescaled: another of the same function, with other ranges
widen                int16 where channels are still of very different sizes
widen_answers        int16 for the last layers and what is computed behind them
clip_weights         other scales of the weights
round_weights        other weights on these scales
bias_correction      other biases, for what all of this does to the means
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from pipeline.custom.operators import Operators
from pipeline.graph import Graph
from pipeline.project.sections import Quantization
from pipeline.quant.adaptive import adaptively_rounded
from pipeline.quant.bias import bias_corrected
from pipeline.quant.clipping import clipped
from pipeline.quant.equalize import equalizing
from pipeline.quant.migrate import migrating
from pipeline.quant.observe import Series
from pipeline.quant.rescale import Factors, rescaled
from pipeline.targets.target import Weights

RESCALING = ("equalize", "migrate")
WIDENING = "widen"
WIDENING_ANSWERS = "widen_answers"
SWITCHES = (
    *RESCALING,
    WIDENING,
    WIDENING_ANSWERS,
    "clip_weights",
    "round_weights",
    "bias_correction",
)


def switched_on(quantization: Quantization) -> tuple[str, ...]:
    """The switches that the project asks for, in their order."""
    return tuple(name for name in SWITCHES if getattr(quantization, name) in (True, "adaptive"))


def left_open(quantization: Quantization) -> tuple[str, ...]:
    """The switches of which the project says neither that they are on nor that they are off."""
    return tuple(name for name in SWITCHES if getattr(quantization, name) is None)


def rescaling(
    graph: Graph,
    switches: Collection[str],
    feeds: Series,
    weights: Weights,
    operators: Operators,
) -> Factors:
    """What equalize and migrate, as far as they are on, divide the channels by."""
    equal = equalizing(graph) if "equalize" in switches else {}
    if "migrate" not in switches:
        return equal
    moved = migrating(rescaled(graph, equal), feeds, weights, operators)
    return {name: np.multiply(s, equal.get(name, 1.0)).tolist() for name, s in moved.items()}


def recovered(
    real: Graph,
    calibrated: Graph,
    switches: Sequence[str],
    feeds: Series,
    weights: Weights,
    operators: Operators,
) -> Graph:
    """`calibrated`, which is the float graph `real` with Q/DQ, with the other switches applied."""
    made = calibrated
    if "clip_weights" in switches:
        made = clipped(made, weights)
    if "round_weights" in switches:
        made = adaptively_rounded(made, feeds, operators)
    if "bias_correction" in switches:
        made = bias_corrected(real, made, feeds, operators)
    return made
