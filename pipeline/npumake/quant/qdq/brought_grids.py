"""Grids of the model itself: Q/DQ of a quantized file, or of quantization-aware training.

They stay as they are. Missing grids follow from them: a data movement outputs codes of its input's
grid, an 8-bit image is a code already, and a float weight between two grids gets the target's.
Nodes that still lack a grid stay float, on the CPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

from npumake.borders.images import images
from npumake.engine.fusion import result
from npumake.engine.quantized_node import is_constant
from npumake.engine.rules import PLACES, RULES
from npumake.engine.tflite_rules import TWICE, computes
from npumake.errors import ProjectError, Route
from npumake.graph import Graph, Node, Value, annotate, keep_float
from npumake.graph.qdq import (
    QDQ_OPERATORS,
    Grid,
    dequantizer_of,
    first_quantizer,
    is_qdq,
    scalar_grid_of,
    sole_quantizer,
)
from npumake.project.sections import Calibration, Quantization
from npumake.quant.precision.grids import image_grid
from npumake.quant.precision.placement import SAME_GRID_OPERATORS, activations, runs
from npumake.quant.precision.precision_plan import MAX_NAMES_IN_NOTE, plan_precision
from npumake.quant.precision.type_propagation import WIDE, is_of_one_type
from npumake.quant.precision.type_requests import FLOATS, requested_types
from npumake.quant.qdq.brought_constants import (
    bias_factor,
    is_wide,
    keep_codes,
    make_constants_real,
)
from npumake.quant.qdq.division_guards import guard_divisions
from npumake.quant.qdq.fixed_output_params import requantize_fixed_outputs
from npumake.quant.qdq.grid_assignment import type_of
from npumake.quant.qdq.insert import DEFAULT, quantize_activation, quantize_constants
from npumake.quant.qdq.merge_pairs import merge_pairs, refuse_wide
from npumake.quant.qdq.uint8_to_int8 import to_signed
from npumake.targets.parts import takes_int16
from npumake.targets.target import Target

NOTE_SYMMETRIC = "int16 with zero point 0 and a wider scale, the target has no other"
NOTE_BIAS_SCALE = "a bias has another scale than the products it is added to, and gets theirs"
NOTE_REGRIDDED = "weights rounded to int8 with zero point 0, the target has no other"
EXACT_MOVES = SAME_GRID_OPERATORS - {"Resize"}  # outputs are input codes
LOAD = "load"


def carries_grids(graph: Graph) -> bool:
    """Whether a computed tensor or an input is on a grid of the model's own."""
    return any(not is_constant(node.inputs[0]) for node in graph.nodes(*QDQ_OPERATORS))


def check_method(graph: Graph, calibration: Calibration) -> None:
    """Raises ProjectError if the model carries grids and `method` is not `load`."""
    if carries_grids(graph) and calibration.method != LOAD:
        message = f"the model carries its own scales, `{calibration.method}` would ignore them"
        raise ProjectError(message, Route("calibration.method"), f"write  method: {LOAD}")


def check_float(graph: Graph, quantization: Quantization, target: Target) -> None:
    """Raises ProjectError if a model without grids would run some node in integers."""
    if plan_precision(graph, quantization, target).nodes:
        hint = "choose kl, max or max_percentile to find its thresholds"
        message = "the model is float: it has no Q/DQ to load scales from"
        raise ProjectError(message, Route("calibration.method"), hint)


def check_only_defaults(quantization: Quantization) -> None:
    """Raises ProjectError for settings that the model's own types overrule. Units may be chosen,
    and float types."""
    rules = quantization.types if isinstance(quantization.types, tuple) else (quantization.types,)
    floats = all(type in FLOATS for types in rules for type in types.values())
    free = {"cpu", "npu", *(["types"] if floats else [])}
    for key in fields(quantization):
        own = getattr(quantization, key.name) == getattr(Quantization(), key.name)
        if key.name not in free and not own:
            message = f"the model carries its own types, `{key.name}` would ignore them"
            raise ProjectError(message, Route(f"quantization.{key.name}"), "leave it out")


def with_own_grids(graph: Graph, target: Target, quantization: Quantization = DEFAULT) -> Graph:
    """A copy of a graph that carries grids, with the grids that follow from them.

    Raises StageError for int16 if the target has none.
    """
    graph, notes = graph.copy(), list[str]()
    merge_pairs(graph)
    refuse_wide(graph, target)
    off_products = _off_products(graph)
    if target.rounding == TWICE:
        notes += _notes(NOTE_SYMMETRIC, to_signed(graph))
    _quantize_images(graph, target)
    units = requested_types(graph, quantization)
    moved = list[str]()
    for node in graph.nodes():
        if is_qdq(node):
            continue
        chip = runs(node, target, node in units.npu) and computes(node, target.rounding)
        if node in units.cpu or not chip:
            keep_float(node)
            make_constants_real(graph, node)
            continue
        if _fitted(graph, node, target):
            moved.append(str(node.name))
    annotate(
        graph, [*notes, *_notes(NOTE_REGRIDDED, moved), *_notes(NOTE_BIAS_SCALE, off_products)]
    )
    if target.rounding == TWICE:
        requantize_fixed_outputs(graph)
    guard_divisions(graph)
    graph.drop_unused()
    return graph.with_shapes()


def _quantize_images(graph: Graph, target: Target) -> None:
    """Quantizes 8-bit images, whose pixels are codes."""
    for value in graph.inputs:
        if str(value.name) in images(graph) and not first_quantizer(value):
            readers = {use.node for use in value.uses()}
            quantize_activation(graph, value, image_grid(target.activations), readers)


def _fitted(graph: Graph, node: Node, target: Target) -> bool:
    """Completes the grids around a chip node. Returns whether a weight moved to another grid."""
    lies_on = {value: grid for value in activations(node) if (grid := _grid(value))}
    if len(lies_on) < len(activations(node)) or not lies_on:
        make_constants_real(graph, node)
        return False
    output = result(node)
    if node.op_type in EXACT_MOVES and not first_quantizer(output):
        quantize_activation(graph, output, lies_on[activations(node)[0]], {node})
    if not sole_quantizer(output) and node.op_type not in PLACES:
        make_constants_real(graph, node)
        return False
    read = {i: lies_on[v] for i, v in enumerate(node.inputs) if v in lies_on}
    made_on = [grid for use in output.uses() if (grid := scalar_grid_of(use.node)) is not None]
    if not _has_types(node, [*read.values(), *made_on], target):
        keep_float(node)
        make_constants_real(graph, node)
        return False
    moved = keep_codes(graph, node, read, target)
    wide = range(len(node.inputs)) if is_wide(read) else ()
    quantize_constants(graph, node, read, target, wide, next(iter(made_on), None))
    return moved


def _off_products(graph: Graph) -> list[str]:
    """Nodes whose bias contradicts the other scales of the file."""
    names = []
    for node in graph.nodes():
        factor = bias_factor(node, _grids_read(node))
        if factor != 1.0:
            names.append(f"{node.name} ({factor:.4g} times)")
    return names


def _grids_read(node: Node) -> dict[int, Grid]:
    grids = ((index, _grid(value)) for index, value in enumerate(node.inputs) if value is not None)
    return {index: grid for index, grid in grids if grid is not None}


def _has_types(node: Node, grids: Sequence[Grid], target: Target) -> bool:
    """Whether the unit runs the node on these types."""
    types = {type_of(grid) for grid in grids}
    if WIDE in types and not takes_int16(node, target):
        return False
    return len(types) == 1 or not is_of_one_type(node, target)


def _notes(summary: str, names: Sequence[str]) -> list[str]:
    suffix = f" and {len(names) - MAX_NAMES_IN_NOTE} more" if len(names) > MAX_NAMES_IN_NOTE else ""
    return [f"{summary}: {', '.join(names[:MAX_NAMES_IN_NOTE])}{suffix}"] if names else []


def _grid(value: Value) -> Grid | None:
    """The per-tensor grid of a dequantized value."""
    return scalar_grid_of(dequantizer_of(value))


assert RULES.keys() >= EXACT_MOVES
