"""Corrections: the table of switches, in the order in which they apply.

equalize, even_depthwise, migrate
                     rescaled float model: the same function with other ranges
per_channel          likewise: every channel has the range of its tensor (key of `calibration`)
widen                int16 where channel sizes still differ strongly
widen_answers        int16 for the last layers and the nodes behind them
widen_sensitive      int16 for the few tensors with most of the activation noise
clip_weights         smaller weight scales
round_weights        other weights on these scales
bias_correction      biases that undo the shifts of the means
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from npumake.custom.operators import Operators
from npumake.engine.partial.walk import Series
from npumake.graph import Graph
from npumake.project.sections import Calibration, Quantization
from npumake.quant.calibration.channel_imbalance import uneven_tensors
from npumake.quant.calibration.statistics import Statistics
from npumake.quant.correction.adaptive_rounding import round_adaptively
from npumake.quant.correction.bias_correction import FloatLayers, correct_biases
from npumake.quant.correction.cross_layer_equalization import equalization_factors
from npumake.quant.correction.rescale_groups import Factors, rescaled
from npumake.quant.correction.smoothquant import (
    DEPTHWISE_STRENGTH,
    NO_EXTREMES,
    STRENGTH,
    Migration,
    smoothquant_factors,
)
from npumake.quant.correction.weight_clipping import clip_weights
from npumake.targets.target import WeightGrid

EVEN = "even_depthwise"
MIGRATE = "migrate"
RESCALING = ("equalize", EVEN, MIGRATE)
PER_CHANNEL = "per_channel"
RESCALES = (*RESCALING, PER_CHANNEL)
# The share that moves to the weights.
MIGRATING = {EVEN: DEPTHWISE_STRENGTH, MIGRATE: STRENGTH, PER_CHANNEL: 1.0}
WIDENING = "widen"
WIDENING_ANSWERS = "widen_answers"
WIDENING_SENSITIVE = "widen_sensitive"
BIAS = "bias_correction"
CORRECTING = ("clip_weights", "round_weights", BIAS)  # the calibrated graph, in this order
SWITCHES = (*RESCALES, WIDENING, WIDENING_ANSWERS, WIDENING_SENSITIVE, *CORRECTING)


def switched_on(quantization: Quantization, calibration: Calibration) -> tuple[str, ...]:
    """The switches that the project turns on, in order."""
    settings = {name: getattr(quantization, name) for name in SWITCHES if name != PER_CHANNEL}
    settings[PER_CHANNEL] = calibration.per_channel
    return tuple(name for name in SWITCHES if settings[name] in (True, "adaptive"))


def is_searched(quantization: Quantization, calibration: Calibration) -> bool:
    """Whether a recipe has decisions beyond the project's: a method, or nodes for int16."""
    widens = {WIDENING, WIDENING_ANSWERS, WIDENING_SENSITIVE}
    is_search = calibration.recipe == "best" or calibration.method == "default"
    return is_search or not widens.isdisjoint(switched_on(quantization, calibration))


def left_open(quantization: Quantization) -> tuple[str, ...]:
    """The switches that the project neither turns on nor off."""
    names = (name for name in SWITCHES if name != PER_CHANNEL)
    return tuple(name for name in names if getattr(quantization, name) is None)


def rescale_factors(
    graph: Graph,
    switches: Collection[str],
    feeds: Series,
    weights: WeightGrid,
    operators: Operators,
    statistics: Statistics,
) -> Factors:
    """The channel factors of equalize, even_depthwise, migrate and per_channel, as far as they are
    on. `statistics` are those of `graph` over the feeds."""
    total = equalization_factors(graph) if "equalize" in switches else {}
    for switch, strength in MIGRATING.items():
        if switch in switches:
            extremes = NO_EXTREMES if total else statistics.channels
            uneven = uneven_tensors(graph, statistics) if switch == MIGRATE else ()
            migration = Migration(strength, extremes, uneven, _in_depthwise(switch, switches))
            real = rescaled(graph, total)
            moved = smoothquant_factors(real, feeds, weights, operators, migration)
            total = {n: np.multiply(s, total.get(n, 1.0)).tolist() for n, s in moved.items()}
    return total


def _in_depthwise(switch: str, switches: Collection[str]) -> bool | None:
    """The groups of a switch by their readers: those of EVEN are not moved twice."""
    if switch == EVEN:
        return True
    return False if switch == MIGRATE and EVEN in switches else None


def apply_corrections(
    real: FloatLayers,
    calibrated: Graph,
    switches: Sequence[str],
    feeds: Series,
    weights: WeightGrid,
    applied: Sequence[str] = (),
) -> Graph:
    """`calibrated` with the other switches applied; it is the float graph `real` with Q/DQ, and
    has the switches `applied` already."""
    graph = calibrated
    if "clip_weights" in switches:
        graph = clip_weights(graph, weights)
    if "round_weights" in switches:
        graph = round_adaptively(real.graph, graph, feeds, real.operators)
    if BIAS in switches:
        rounded = "round_weights" in (*applied, *switches)
        graph = correct_biases(real, graph, feeds, rounded=rounded)
    return graph
