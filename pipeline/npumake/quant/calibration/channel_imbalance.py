"""Uneven channels: tensors on which 8 bits are one grid for channels of very different sizes.

A tensor is on a grid of step s = (h - l) / 255, from its least to its largest value with zero among
them. A channel c with extremes l_c, h_c has n_c = (h_c - l_c) / s codes between them. Few codes do
no harm in front of a convolution over all channels, where a small channel adds little to the sum.
They do where each channel is read by itself, by a depthwise convolution or a function such as
Sigmoid, which makes as much of a small channel as of a large one:

    starved   n_c < FEW, though such a reader makes 2 * FEW codes or more of the channel, or what
              it makes is starved in turn: the Conv in front of SiLU, for what reads the product
    uneven    SHARE of the channels or more are starved

FEW = 8: with 3 bits the rounding error s / sqrt(12) of a uniform channel is 1/8 of its standard
deviation, 18 dB. A dead channel has no code in front and none behind, so it is not starved. Every
channel counts as one: whatever its size, what reads it has brought it to the others' size. In
YOLOX-nano, whose stem has channels of 0.2 ... 150, 31 and 38 % of the channels of the first two
tensors have less than 8 codes, of all others 8 % at most. FastestDet, YuNet and MobileNet have no
tensor with a quarter of such channels. UltraFace has many, before and behind its depthwise
convolutions alike: what is small stays small, so they are not starved.

Proposed for int16: who makes an uneven tensor and all who read it, so that SiLU goes as a whole,
Conv, Sigmoid and Mul. Nothing is run.
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
from npumake.targets.target import Target

Mask = npt.NDArray[np.bool_]

TOGETHER = frozenset({"Add", "Mul"})  # keep channels apart, but of two tensors
FEW = 8  # codes
SHARE = 0.25
STEPS = 255


def uneven_tensors(graph: Graph, statistics: Statistics) -> tuple[str, ...]:
    """The names of the uneven tensors, in the order of `statistics`, those of the float `graph`."""
    values = graph.values()
    starved: dict[str, Mask] = {}
    for name in reversed(list(statistics.channels)):  # whoever reads it is behind it
        starved[name] = _starved(values[name], statistics, starved)
    return tuple(name for name in statistics.channels if starved[name].mean() >= SHARE)


def int16_candidates(
    graph: Graph, statistics: Statistics, target: Target, quantization: Quantization
) -> tuple[str, ...]:
    """The nodes for int16 by name, in graph order: those around uneven tensors, as far as they
    would then be int16 on the target, and the project does not say otherwise.

    Raises ProjectError for a name in `quantization` that means nothing.
    """
    tensors = uneven_tensors(graph, statistics)
    nodes = plan_precision(graph, quantization, target).nodes
    outputs = [result(node) for node in nodes if target.takes_int16(node.op_type)]
    apart = [value for value in outputs if value.name in tensors]
    near = {*apart, *(result(use.node) for value in apart for use in value.uses())}
    names = [str(node.name) for node in nodes if result(node) in near]
    types = plan_precision(graph, with_int16_nodes(quantization, names), target).makes
    return tuple(str(n.name) for n in nodes if result(n) in near and types.get(result(n)) == WIDE)


def with_int16_nodes(quantization: Quantization, names: Sequence[str]) -> Quantization:
    """`quantization` with int16 for these nodes where it says nothing of them."""
    if not names:
        return quantization
    rules = quantization.types
    later = rules if isinstance(rules, tuple) else (rules,)
    return replace(quantization, types=({name: "int16" for name in names}, *later))


def _starved(value: Value, statistics: Statistics, behind: Mapping[str, Mask]) -> Mask:
    """Of each channel whether it is, given that of the tensors behind."""
    codes = _codes(str(value.name), statistics)
    starved = np.zeros(codes.shape, np.bool_)
    for reader in dict.fromkeys(use.node for use in value.uses()):
        output = str(result(reader).name)
        if output not in behind or behind[output].shape != codes.shape:
            continue
        if reader.op_type in TOGETHER:
            starved |= behind[output]
        elif _reads_one_by_one(reader):
            starved |= behind[output] | (_codes(output, statistics) >= 2 * FEW)
    return starved & (codes < FEW)


def _reads_one_by_one(node: Node) -> bool:
    weight = node.inputs[1] if node.op_type == "Conv" else None
    return node.op_type in FUNCTIONS or (weight is not None and shape(weight)[1] == 1)


def _codes(name: str, statistics: Statistics) -> np.ndarray:
    """n of each channel of a tensor."""
    whole, (low, high) = statistics.tensors[name], statistics.channels[name]
    span = max(whole.high, 0.0) - min(whole.low, 0.0)
    return (high.astype(np.float64) - low) * (STEPS / span if span else 0.0)
