"""Q/DQ with the same grid behind data movements on the CPU; onnxruntime would fail without them.

onnxruntime inserts Q/DQ behind a Reshape of dequantized codes by itself. From opset 21 on it writes
the type of the codes twice. On x86 it then makes the codes uint8 in one of the two places and
refuses the model that it wrote (seen in 1.32). If the pair exists, it inserts none. The values are
on the grid before and behind, so nothing is rounded.
"""

from __future__ import annotations

from npumake.graph import Graph, Node, Value
from npumake.graph.qdq import Grid, dequantizer_of, insert_pair, is_quantize, scalar_grid_of

MIN_OPSET = 21
MOVES = ("MaxPool", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze")


def requantize_moves(graph: Graph) -> None:
    """Inserts the pairs for every reader but a QuantizeLinear, and for model outputs."""
    if graph.opset < MIN_OPSET:
        return
    for node in graph.nodes(*MOVES):
        grid, moved = _grid(node.inputs[0]), node.outputs[0]
        if grid is not None and not _goes_into_a_grid(moved):
            _lay(graph, moved, grid)


def _grid(value: Value | None) -> Grid | None:
    """The int8 grid from which `value` is dequantized."""
    grid = scalar_grid_of(dequantizer_of(value))
    return None if grid is None or grid.zero_point.dtype != "int8" else grid


def _readers(value: Value) -> list[Node]:
    return [use.node for use in value.uses()]


def _goes_into_a_grid(value: Value) -> bool:
    return not value.is_graph_output() and all(map(is_quantize, _readers(value)))


def _lay(graph: Graph, moved: Value, grid: Grid) -> None:
    readers = [node for node in _readers(moved) if not is_quantize(node)]
    real = insert_pair(graph, moved, grid, str(moved.name)).real
    graph.replace_readers(moved, real, readers)
    if moved.is_graph_output():
        graph.replace_output(moved, real)
