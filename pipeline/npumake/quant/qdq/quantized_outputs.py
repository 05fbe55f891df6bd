"""Quantized outputs: the model outputs codes of one type instead of real values.

Outputs of the CPU stay float.
"""

from __future__ import annotations

from collections.abc import Mapping

from npumake.graph import Graph, Node, Value, producer
from npumake.graph.qdq import Grid, codes_dtype, insert_pair, is_dequantize
from npumake.quant.precision.grids import Grids
from npumake.quant.qdq.grid_assignment import GridAssignment, retyped, type_of


def output_grids(
    graph: Graph, type: str | None, assignment: GridAssignment, grids: Mapping[str, Grids]
) -> dict[str, Grid]:
    """The grid of each output by name; empty for a model with float outputs."""
    if type is None or type == "float32":
        return {}
    outputs = (value for value in graph.outputs if value in assignment.outputs and producer(value))
    return {
        str(value.name): retyped(value, assignment.outputs[value], type, grids) for value in outputs
    }


def quantize_outputs(graph: Graph, grids: Mapping[str, Grid]) -> None:
    """Replaces each of these dequantized outputs by the codes behind it."""
    for value in graph.outputs:
        grid, maker = grids.get(str(value.name)), producer(value)
        if grid is not None and maker is not None:
            codes = _codes(graph, value, maker, grid)
            graph.set_type(codes, str(grid.zero_point.dtype))
            graph.replace_output(value, codes)
            for reader in dict.fromkeys([maker, *(use.node for use in tuple(codes.uses()))]):
                if is_dequantize(reader) and not reader.outputs[0].uses():
                    graph.remove(reader)


def _codes(graph: Graph, value: Value, maker: Node, grid: Grid) -> Value:
    """The codes that `maker` dequantizes, or codes on `grid` if the types differ."""
    codes = maker.inputs[0]
    if codes is not None and codes_dtype(maker) == grid.zero_point.dtype:
        return codes
    return insert_pair(graph, value, grid, f"{value.name}_{type_of(grid)}").codes
