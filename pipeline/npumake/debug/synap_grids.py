"""The quantization parameters of a model as SyNAP's quantizer lists them.

    quantization_info.yaml      the grid of every tensor:      '@<layer>:<out0|weight|bias>'
    quantization_entropy.txt    the loss of each grid, ascending, activations first

A layer has the name of its node. The entropy is the Kullback-Leibler divergence of a tensor before
and after quantization (quant.calibration.entropy), clipped to 0..1: 0 is good, 1 is bad.

    dynamic_fixed_point   real = q / 2**fl      asymmetric_affine   real = scale * (q - zero_point)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import yaml

from npumake.digest import Json
from npumake.engine.fusion import absorbed, result
from npumake.engine.grids import dequantizer
from npumake.engine.rules import RULES
from npumake.graph import Graph, Node, Value, array, producer
from npumake.graph.qdq import (
    Grid,
    axis_of,
    dequantizer_of,
    first_quantizer,
    grid_of,
    is_qdq,
    scalar_grid_of,
)
from npumake.quant.calibration.entropy import divergence, divergence_of
from npumake.quant.calibration.statistics import Statistics
from npumake.targets.target import Target

QTYPES = {"uint8": "u8", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64"}
FIXED, AFFINE = "dynamic_fixed_point", "asymmetric_affine"
PER_CHANNEL = "perchannel_symmetric_affine"


class ListedTensor(NamedTuple):
    """A quantized tensor: `values` of a constant, else the `name` of an observed tensor."""

    layer: str
    role: str
    grid: Grid
    scheme: str
    name: str = ""
    axis: int = 1  # of the channels, if per-channel
    values: np.ndarray | None = None


def quantization_info(calibrated: Graph, target: Target) -> str:
    """The text of quantization_info.yaml for a graph in Q/DQ form; empty if nothing is quantized.
    `target` has the project's quantization scheme."""
    document = {
        f"@{tensor.layer}:{tensor.role}": _entry(tensor) for tensor in _grids(calibrated, target)
    }
    return yaml_of(document) if document else ""


def quantization_entropy(calibrated: Graph, target: Target, statistics: Statistics) -> str:
    """The text of quantization_entropy.txt. `statistics` are of the float graph; outputs of data
    movement are not observed and not listed."""
    activations, weights = dict[str, float](), dict[str, float]()
    for tensor in _grids(calibrated, target):
        if tensor.values is not None and tensor.role == "weight":
            weights[f"@{tensor.layer}:weight"] = divergence_of(
                tensor.values, tensor.grid, tensor.axis
            )
        elif tensor.role == "out0" and tensor.name in statistics.tensors:
            histogram = statistics.tensors[tensor.name]
            activations[f"@{tensor.layer}:out0"] = divergence(histogram, tensor.grid)
    return "".join(
        f"{name}, {min(loss, 1.0):.6f}\n"
        for losses in (activations, weights)
        for loss, name in sorted((loss, name) for name, loss in losses.items())
    )


def yaml_of(data: Json) -> str:
    return str(yaml.safe_dump(data, sort_keys=False, default_flow_style=None, width=100))


def fraction(scale: float, zero_point: int) -> int | None:
    """fl of scale = 2**-fl with zero point 0; None for any other grid."""
    mantissa, exponent = np.frexp(scale)
    return None if zero_point or mantissa != 0.5 else 1 - int(exponent)


def scheme_of(dtype: str, scale: float, zero_point: int, target: Target) -> str:
    """The scheme of a per-tensor grid; power-of-two scales are fixed point if the target's are."""
    is_fixed = {"int16": target.int16_power_of_two}.get(dtype, target.activations.power_of_two)
    return FIXED if is_fixed and fraction(scale, zero_point) is not None else AFFINE


def _grids(graph: Graph, target: Target) -> Iterator[ListedTensor]:
    """Every grid of the graph: inputs, then the outputs and constants of each node."""
    for value in graph.inputs:
        yield from _quantized(str(value.name), value, target)
    clamps = {absorbed(node) for node in graph.nodes()}
    for node in graph.nodes():
        if is_qdq(node) or node in clamps:
            continue
        yield from _quantized(str(node.name), result(node), target)
        if len(node.inputs) > 1 and node.inputs[1] is not None:
            yield from _constants(node, target)


def _quantized(layer: str, value: Value, target: Target) -> Iterator[ListedTensor]:
    quantizer = first_quantizer(value)
    grid = None if quantizer is None else grid_of(quantizer)
    if grid is not None:
        yield ListedTensor(layer, "out0", grid, _scheme(grid, target), str(value.name))


def _constants(node: Node, target: Target) -> Iterator[ListedTensor]:
    """The weight of a node, and its bias with scale_x * scale_w."""
    reads = dequantizer_of(node.inputs[1])
    if reads is None or reads.inputs[0] is None:
        return
    before, grid = producer(reads.inputs[0]), grid_of(reads)
    values = array(before.inputs[0] if before else reads.inputs[0])
    if grid is None or values is None:
        return
    per_channel = target.weights.per_channel and grid.zero_point.dtype == np.int8
    if not per_channel and np.unique(grid.scale).size == 1:
        grid = Grid(grid.scale.reshape(-1)[0], grid.zero_point.reshape(-1)[0])
    axis, scheme = axis_of(reads), _scheme(grid, target)
    tensor = ListedTensor(str(node.name), "weight", grid, scheme, axis=axis)
    yield tensor._replace(values=values if before else None)
    has_bias = len(node.inputs) > 2 and 2 in _weights(node)
    is_biased = has_bias and node.inputs[2] is not None
    input_grid = scalar_grid_of(dequantizer(node.inputs[0])) if is_biased else None
    if input_grid is not None:
        wide = np.int64 if grid.zero_point.dtype == np.int16 else np.int32
        scale = input_grid.scale.astype(np.float64) * grid.scale
        products = Grid(np.asarray(scale), np.zeros(np.shape(scale), wide))
        bias = _scheme(products, target) if scheme == FIXED else scheme
        yield ListedTensor(str(node.name), "bias", products, bias)


def _weights(node: Node) -> tuple[int, ...]:
    return RULES[node.op_type].weights if node.op_type in RULES else ()


def _scheme(grid: Grid, target: Target) -> str:
    if np.ndim(grid.scale):
        return PER_CHANNEL
    dtype = grid.zero_point.dtype.name
    if dtype in ("int32", "int64"):
        return FIXED if fraction(float(grid.scale), 0) is not None else AFFINE
    return scheme_of(dtype, float(grid.scale), int(grid.zero_point), target)


def _entry(tensor: ListedTensor) -> Json:
    limits = np.iinfo(tensor.grid.zero_point.dtype)
    scale = np.asarray(tensor.grid.scale, np.float64)
    zero = np.asarray(tensor.grid.zero_point).astype(np.float64)
    document = {
        "qtype": QTYPES[tensor.grid.zero_point.dtype.name],
        "quantizer": tensor.scheme,
        "rounding": "rtne",
        "max_value": ((limits.max - zero) * scale).tolist(),
        "min_value": ((limits.min - zero) * scale).tolist(),
    }
    if tensor.scheme == FIXED:
        return {**document, "fl": fraction(float(scale), 0)}
    return {**document, "scale": scale.tolist(), "zero_point": zero.astype(np.int64).tolist()}
