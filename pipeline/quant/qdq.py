"""Q/DQ: a float graph that says, in standard ONNX, on which grid each tensor lies.

Every tensor a chip node reads or makes passes through QuantizeLinear and DequantizeLinear. The
weights stay float, each behind a Q/DQ pair of its own; `integers` folds those.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pipeline.engine.fusion import absorbed
from pipeline.engine.rules import CONSTANT_OPERANDS, RULES
from pipeline.graph import Graph, Node, Value, array, attribute, is_float, producer
from pipeline.quant.grids import MAX_BIAS, Grid, constant_grid, weight_grid
from pipeline.quant.placement import activations, on_chip, root
from pipeline.targets.target import Target


def with_qdq(graph: Graph, grids: Mapping[str, Grid], target: Target) -> Graph:
    """A copy of `graph` with Q/DQ around whatever runs on the chip.

    `grids` holds the grid of every observed tensor (pipeline.quant.placement.observed).
    """
    graph = graph.copy()
    chip = on_chip(graph, target)
    hidden = {node.outputs[0] for node in chip if absorbed(node) in chip}
    made = [value for node in graph.nodes() for value in node.outputs]
    lies_on = {
        value: grids[str(root(value).name)]
        for value in (*graph.inputs, *made)
        if is_float(value) and value not in hidden and str(root(value).name) in grids
    }
    for node in graph.nodes():
        if node in chip:
            quantize_constants(graph, node, lies_on, target)
    for value, grid in lies_on.items():
        quantize_activation(graph, value, grid, chip)
    return graph.with_shapes()


def quantize_dequantize(
    graph: Graph,
    value: Value,
    grid: Grid,
    name: str,
    *,
    axis: int | None = None,
    before: Node | None = None,
) -> Value:
    """Q and DQ behind `value`, called after `name`; the dequantized value.

    A constant has no node to stand behind: its pair stands `before` the node that reads it.
    """
    scale = graph.constant(f"{name}_scale", grid.scale)
    zero_point = graph.constant(f"{name}_zero_point", grid.zero_point)
    inputs = [value, scale, zero_point]
    codes = graph.insert(
        "QuantizeLinear", inputs, f"{name}_quantized", producer(value), before=before, axis=axis
    )
    inputs = [codes, scale, zero_point]
    return graph.insert(
        "DequantizeLinear", inputs, f"{name}_dequantized", producer(codes), axis=axis
    )


def quantize_activation(graph: Graph, value: Value, grid: Grid, chip: set[Node]) -> None:
    """For the chip nodes that read it; for every reader when a chip node makes it."""
    readers = [use.node for use in tuple(value.uses())]
    on_the_chip = [node for node in readers if node in chip]
    from_the_chip = producer(value) in chip
    if not on_the_chip and not from_the_chip:
        return
    real = quantize_dequantize(graph, value, grid, str(value.name))
    if from_the_chip and value.is_graph_output():
        graph.replace_output(value, real)
    graph.replace_readers(value, real, readers if from_the_chip else on_the_chip)


def quantize_constants(
    graph: Graph, node: Node, lies_on: Mapping[Value, Grid], target: Target
) -> None:
    """Weights per channel; a constant operand like an activation; a bias later, as int32."""
    weights = RULES[node.op_type].weights if node.op_type in RULES else ()
    for index, value in enumerate(tuple(node.inputs)):
        values = array(value)
        if value is None or values is None or not is_float(value):
            continue
        axis: int | None = None
        if index in weights[:1]:
            axis = channel_axis(node)
            smallest = _smallest_scales(node, values.shape[axis], lies_on)
            grid = weight_grid(values, axis, target.weights, smallest)
        elif node.op_type in CONSTANT_OPERANDS:
            grid = constant_grid(values, target.activations)
        else:
            continue
        name = str(value.name)
        real = quantize_dequantize(graph, value, grid, name, axis=axis, before=node)
        graph.set_inputs(node, {index: real})


def channel_axis(node: Node) -> int:
    """The axis of the weight that counts output channels."""
    if node.op_type == "Conv" or (node.op_type == "Gemm" and attribute(node, "transB", 0)):
        return 0
    return 1


def _smallest_scales(node: Node, channels: int, lies_on: Mapping[Value, Grid]) -> np.ndarray:
    """Per channel, the weight scale below which bias / (s_x * s_w) would leave int32."""
    bias = array(node.inputs[2]) if len(node.inputs) > 2 else None
    if bias is None:
        return np.zeros(channels)
    (fed,) = activations(node)
    s_x = float(lies_on[fed].scale)
    return np.abs(bias.reshape(-1).astype(np.float64)) / (s_x * MAX_BIAS)
