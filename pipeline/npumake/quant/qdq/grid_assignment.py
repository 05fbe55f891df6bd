"""Grid assignment: the grid of every tensor at every use, by the types of the plan.

An 8-bit output that is read as int16 is converted exactly (precision.grids.exact_int16_grid). The
other way it is rounded to the tensor's 8-bit grid. A data movement outputs codes of its input's
grid.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from npumake.engine.fusion import result
from npumake.graph import Graph, Node, Value, is_float
from npumake.graph.qdq import Grid
from npumake.quant.precision.grids import Grids, activation_grid, exact_int16_grid, image_grid
from npumake.quant.precision.placement import SAME_GRID_OPERATORS, activations, source_tensor
from npumake.quant.precision.precision_plan import PrecisionPlan
from npumake.quant.precision.type_propagation import WIDE
from npumake.targets.target import Target


class GridAssignment(NamedTuple):
    """The grids of chip node outputs and quantized model inputs, and of each input use."""

    outputs: Mapping[Value, Grid]
    inputs: Mapping[tuple[Node, int], Grid]


def grids_of(
    low: float, high: float, target: Target, int16: tuple[float, float] | None = None
) -> Grids:
    """The grids for values in [low, high]; `int16` is the int16 range, if it differs."""
    narrow = activation_grid(low, high, target.activations)
    return Grids(narrow, activation_grid(*(int16 or (low, high)), target.wide))


def grids_of_image(target: Target) -> Grids:
    """The grids of an 8-bit image fed as value - 128: both hold every pixel."""
    narrow = image_grid(target.activations)
    return Grids(narrow, exact_int16_grid(narrow))


def assign_grids(graph: Graph, plan: PrecisionPlan, grids: Mapping[str, Grids]) -> GridAssignment:
    """The grids by use. `grids` are by name of the observed tensor
    (precision.placement.observed_tensors)."""
    outputs = {
        value: _own(value, plan.makes[value], grids)
        for value in graph.inputs
        if value in plan.makes and is_float(value)
    }
    read: dict[tuple[Node, int], Grid] = {}
    for node in plan.nodes:
        for index, value in enumerate(node.inputs):
            if value is not None and value in activations(node):
                type = plan.reads[node, index]
                current = outputs.get(value)
                read[node, index] = (
                    _own(value, type, grids)
                    if current is None
                    else retyped(value, current, type, grids)
                )
        value = result(node)
        if value not in plan.makes:
            continue  # indices are integers
        moves = node.op_type in SAME_GRID_OPERATORS
        outputs[value] = read[node, 0] if moves else _own(value, plan.makes[value], grids)
    return GridAssignment(outputs, read)


def retyped(value: Value, grid: Grid, type: str, grids: Mapping[str, Grids]) -> Grid:
    """The grid of this type for a tensor on `grid`; `grid` itself if the type matches."""
    if type == type_of(grid):
        return grid
    return exact_int16_grid(grid) if type == WIDE else _own(value, type, grids)


def type_of(grid: Grid) -> str:
    return WIDE if grid.zero_point.dtype.itemsize > 1 else "int8"


def _own(value: Value, type: str, grids: Mapping[str, Grids]) -> Grid:
    value_grids = grids[str(source_tensor(value).name)]
    return value_grids.wide if type == WIDE else value_grids.narrow
