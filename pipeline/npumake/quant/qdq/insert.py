"""Inserts Q/DQ: QuantizeLinear and DequantizeLinear around every tensor on the chip.

Every input and output of a chip node passes through Q and DQ. Weights stay float behind a Q/DQ pair
of their own, which `integers` folds.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import numpy as np

from npumake.engine.fusion import result
from npumake.engine.rules import CONSTANT_OPERANDS, RULES
from npumake.graph import (
    Graph,
    Node,
    Value,
    allow_int16,
    annotate,
    array,
    attribute,
    complete,
    hand_out_sums,
    is_float,
    keep_float,
    mark_wide_bias,
    producer,
    run_on_unit,
)
from npumake.graph.qdq import Grid, insert_pair
from npumake.project.sections import Quantization
from npumake.quant.precision.constants import operand_grid
from npumake.quant.precision.fixed_thresholds import with_fixed_thresholds
from npumake.quant.precision.grids import MAX_BIAS, MAX_WIDE_BIAS, Grids, weight_grid
from npumake.quant.precision.joined import with_concat_grids
from npumake.quant.precision.precision_plan import PrecisionPlan, plan_precision
from npumake.quant.precision.scale_limits import limited_scales
from npumake.quant.precision.schemes import weights_beside
from npumake.quant.precision.type_propagation import WIDE, operands
from npumake.quant.qdq.division_guards import guard_divisions
from npumake.quant.qdq.float16 import compute_in_half
from npumake.quant.qdq.grid_assignment import GridAssignment, assign_grids, type_of
from npumake.quant.qdq.quantized_outputs import output_grids, quantize_outputs
from npumake.quant.qdq.requantize_moves import requantize_moves
from npumake.quant.qdq.verify import verify_qdq
from npumake.quant.qdq.where_bounds import clip_where_constants
from npumake.targets.target import Target, WeightGrid

DEFAULT = Quantization()


def with_qdq(
    graph: Graph,
    grids: Mapping[str, Grids],
    target: Target,
    quantization: Quantization = DEFAULT,
) -> Graph:
    """A copy of `graph` with Q/DQ around all chip nodes.

    `grids` holds the grids of every observed tensor (precision.placement.observed_tensors). Raises
    ProjectError for a name in `quantization` that selects nothing.
    """
    graph = graph.copy()
    steps = {name: float(tensor_grids.narrow.scale) for name, tensor_grids in grids.items()}
    plan = plan_precision(graph, quantization, target, steps)
    grids = _grids_of_the_form(graph, plan, grids, target)
    powers = (target.activations.power_of_two, target.wide.power_of_two)
    grids = limited_scales(plan.nodes, grids, powers)
    assignment = assign_grids(graph, plan, grids)
    output_grids_by_name = output_grids(graph, quantization.outputs, assignment, grids)
    if plan.is_wide or WIDE in map(type_of, output_grids_by_name.values()):
        allow_int16(graph)
    _mark_foreign(plan, target)
    compute_in_half(graph, plan.half)
    for node in plan.nodes:
        read = {
            i: assignment.inputs[node, i] for i in operands(node) if (node, i) in assignment.inputs
        }
        wide = {i for i in operands(node) if plan.reads[node, i] == WIDE}
        quantize_constants(graph, node, read, target, wide, assignment.outputs.get(result(node)))
    for value in (*graph.inputs, *(v for node in graph.nodes() for v in node.outputs)):
        _quantize(graph, value, assignment, plan.chip)
    quantize_outputs(graph, output_grids_by_name)
    clip_where_constants(graph)
    requantize_moves(graph)
    _mark(plan)
    annotate(graph, plan.notes)
    verify_qdq(graph, plan, target)
    guard_divisions(graph)
    return complete(graph)


def _grids_of_the_form(
    graph: Graph, plan: PrecisionPlan, grids: Mapping[str, Grids], target: Target
) -> Mapping[str, Grids]:
    grids = with_fixed_thresholds(graph, plan.chip, grids, target)
    is_joined = target.form is not None and target.form.joined
    return with_concat_grids(graph, plan.chip, grids) if is_joined else grids


def _mark_foreign(plan: PrecisionPlan, target: Target) -> None:
    """Marks views for a Gemm and functions that run as parts, on a unit without the operator."""
    for node in plan.nodes:
        if not target.runs_when_asked(node.op_type):
            run_on_unit(node)


def _mark(plan: PrecisionPlan) -> None:
    """Marks float nodes and int32 outputs for the engine, which only sees Q/DQ."""
    for node in plan.float_nodes:
        keep_float(node)
    for node in plan.sums:
        hand_out_sums(node)


def _quantize(
    graph: Graph, value: Value, assignment: GridAssignment, chip: Collection[Node]
) -> None:
    """Inserts one Q/DQ for the tensor's grid, and one behind it for each other grid it is read on.

    All readers of a chip node's output, model outputs included, see the first. Outputs of the CPU
    and model inputs are quantized for chip nodes only.
    """
    uses = [(use.node, use.idx) for use in tuple(value.uses())]
    read: dict[str, list[tuple[Node, int]]] = {}
    for place in uses:
        if place in assignment.inputs:
            read.setdefault(type_of(assignment.inputs[place]), []).append(place)
    from_the_chip = producer(value) in chip and value in assignment.outputs
    if not read and not from_the_chip:
        return
    name, real, first = str(value.name), value, None
    if value in assignment.outputs:
        first = assignment.outputs[value]
        real = insert_pair(graph, value, first, name).real
        if from_the_chip and value.is_graph_output():
            graph.replace_output(value, real)
        _read(graph, real, [p for p in uses if from_the_chip and p not in assignment.inputs])
        _read(graph, real, read.pop(type_of(first), []))
    for type, places in sorted(read.items()):
        grid = assignment.inputs[places[0]]
        called = name if first is None and len(read) == 1 else f"{name}_{type}"
        _read(graph, insert_pair(graph, real, grid, called).real, places)


def _read(graph: Graph, value: Value, places: Iterable[tuple[Node, int]]) -> None:
    for node, index in places:
        graph.set_inputs(node, {index: value})


def quantize_activation(graph: Graph, value: Value, grid: Grid, chip: set[Node]) -> None:
    """Inserts one Q/DQ for the chip nodes that read the value; for every reader of a chip node's
    output."""
    readers = [use.node for use in tuple(value.uses())]
    on_the_chip = [node for node in readers if node in chip]
    from_the_chip = producer(value) in chip
    if not on_the_chip and not from_the_chip:
        return
    real = insert_pair(graph, value, grid, str(value.name)).real
    if from_the_chip and value.is_graph_output():
        graph.replace_output(value, real)
    graph.replace_readers(value, real, readers if from_the_chip else on_the_chip)


def quantize_constants(
    graph: Graph,
    node: Node,
    read: Mapping[int, Grid],
    target: Target,
    wide: Collection[int] = (),
    output: Grid | None = None,
) -> None:
    """Quantizes weights by the target's scheme and constant operands like activations; biases
    follow later.

    `read` has the activation grids by input index, `wide` the int16 inputs, `output` the result's
    grid, if known.
    """
    weights = RULES[node.op_type].weights if node.op_type in RULES else ()
    for index, value in enumerate(tuple(node.inputs)):
        values = array(value)
        if value is None or values is None or not is_float(value):
            continue
        axis: int | None = None
        if index in weights[:1]:
            axis = channel_axis(node)
            scheme = weights_beside(target, index - 1 in wide)
            smallest = _smallest_scales(node, values.shape[axis], read, scheme)
            grid = weight_grid(values, axis, scheme, smallest)
            if scheme.dtype == WIDE:
                mark_wide_bias(node)
        elif node.op_type in CONSTANT_OPERANDS:
            kind = target.wide if index in wide else target.activations
            grid = operand_grid(node, index, values, read, output, kind)
        else:
            continue
        name = str(value.name)
        real = insert_pair(graph, value, grid, name, axis=axis, before=node).real
        graph.set_inputs(node, {index: real})


def channel_axis(node: Node) -> int:
    """The axis of the output channels in the weight."""
    if node.op_type == "Conv" or (node.op_type == "Gemm" and attribute(node, "transB", 0)):
        return 0
    return 1


def groups_of_scales(node: Node) -> int:
    """The repetitions of the weight scales: every group of a ConvTranspose uses them."""
    return int(attribute(node, "group", 1)) if node.op_type == "ConvTranspose" else 1


def _smallest_scales(
    node: Node, channels: int, read: Mapping[int, Grid], scheme: WeightGrid
) -> np.ndarray:
    """Per channel, the weight scale below which bias / (s_x * s_w) overflows its type."""
    bias = array(node.inputs[2]) if len(node.inputs) > 2 else None
    if bias is None:
        return np.zeros(channels)
    s_x = float(read[0].scale)
    largest = np.abs(bias.reshape(groups_of_scales(node), -1).astype(np.float64)).max(axis=0)
    return largest / (s_x * (MAX_WIDE_BIAS if scheme.dtype == WIDE else MAX_BIAS))
