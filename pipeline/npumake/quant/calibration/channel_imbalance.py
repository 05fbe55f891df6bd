"""Channel imbalance: tensors whose channels are too different in size for one 8-bit grid.

The grid of a tensor has the step s = (h - l) / 255. A channel c with extremes l_c, h_c has n_c =
(h_c - l_c) / s codes. Few codes do no harm before a convolution over all channels, where a small
channel adds little to the sum. They do harm where each channel is read by itself, by a depthwise
convolution or a function such as Sigmoid:

    starved   n_c < MIN_CODES, though such a reader outputs 2 * MIN_CODES codes or more, or the
              reader's own output is starved: the Conv in front of SiLU, for readers of the product
    uneven    MAX_STARVED_SHARE of the channels or more are starved

MIN_CODES = 8: with 3 bits the rounding error s / sqrt(12) of a uniform channel is 1/8 of its
standard deviation, 18 dB. A dead channel needs no codes, so it is not starved. Every channel counts
as one, of any size. In YOLOX-nano, whose stem has channels of 0.2 to 150, 31 and 38 % of the
channels of the first two tensors have less than 8 codes; of all others, 8 % at most. FastestDet,
YuNet and MobileNet have no tensor with a quarter of such channels. UltraFace has many before and
behind its depthwise convolutions alike: they stay small, so they are not starved.

Int16 is proposed for the producer of an uneven tensor and for all its readers, so for SiLU as a
whole: Conv, Sigmoid and Mul. The model is not run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from npumake.engine.functions import FUNCTIONS
from npumake.engine.fusion import result
from npumake.graph import Graph, Node, Value, shape
from npumake.project.sections import Quantization
from npumake.quant.calibration.statistics import Statistics
from npumake.quant.precision.precision_plan import plan_precision
from npumake.quant.precision.type_propagation import WIDE
from npumake.targets.parts import takes_int16
from npumake.targets.target import Target

Mask = npt.NDArray[np.bool_]

CHANNELWISE_OPERATORS = frozenset({"Add", "Mul"})  # of two tensors, channel by channel
MIN_CODES = 8
MAX_STARVED_SHARE = 0.25
STEPS_8BIT = 255


def uneven_tensors(graph: Graph, statistics: Statistics) -> tuple[str, ...]:
    """The names of the uneven tensors, in the order of `statistics`, which are of the float
    `graph`."""
    values = graph.values()
    starved: dict[str, Mask] = {}
    for name in reversed(list(statistics.channels)):  # readers come first
        starved[name] = _starved(values[name], statistics, starved)
    return tuple(name for name in statistics.channels if starved[name].mean() >= MAX_STARVED_SHARE)


def int16_candidates(
    graph: Graph, statistics: Statistics, target: Target, quantization: Quantization
) -> tuple[str, ...]:
    """The names of the nodes around uneven tensors that the target would run in int16, in graph
    order.

    Nodes that the project names itself are left out. Raises ProjectError for an unknown name in
    `quantization`.
    """
    tensors = uneven_tensors(graph, statistics)
    nodes = plan_precision(graph, quantization, target).nodes
    outputs = [result(node) for node in nodes if takes_int16(node, target)]
    apart = [value for value in outputs if value.name in tensors]
    near = {*apart, *(result(use.node) for value in apart for use in value.uses())}
    names = [str(node.name) for node in nodes if result(node) in near]
    types = plan_precision(graph, with_int16_nodes(quantization, names), target).makes
    return tuple(str(n.name) for n in nodes if result(n) in near and types.get(result(n)) == WIDE)


def with_int16_nodes(quantization: Quantization, names: Sequence[str]) -> Quantization:
    """`quantization` with int16 for these nodes; the project's own rules win."""
    if not names:
        return quantization
    rules = quantization.types
    later = rules if isinstance(rules, tuple) else (rules,)
    return replace(quantization, types=({name: "int16" for name in names}, *later))


def _starved(value: Value, statistics: Statistics, behind: Mapping[str, Mask]) -> Mask:
    """For each channel whether it is starved; `behind` holds the same of the tensors behind."""
    codes = _codes(str(value.name), statistics)
    starved = np.zeros(codes.shape, np.bool_)
    for reader in dict.fromkeys(use.node for use in value.uses()):
        output = str(result(reader).name)
        if output not in behind or behind[output].shape != codes.shape:
            continue
        if reader.op_type in CHANNELWISE_OPERATORS:
            starved |= behind[output]
        elif _reads_one_by_one(reader):
            starved |= behind[output] | (_codes(output, statistics) >= 2 * MIN_CODES)
    return starved & (codes < MIN_CODES)


def _reads_one_by_one(node: Node) -> bool:
    weight = node.inputs[1] if node.op_type == "Conv" else None
    return node.op_type in FUNCTIONS or (weight is not None and shape(weight)[1] == 1)


def _codes(name: str, statistics: Statistics) -> np.ndarray:
    """The number of codes of each channel of a tensor."""
    whole, (low, high) = statistics.tensors[name], statistics.channels[name]
    span = max(whole.high, 0.0) - min(whole.low, 0.0)
    return (high.astype(np.float64) - low) * (STEPS_8BIT / span if span else 0.0)
