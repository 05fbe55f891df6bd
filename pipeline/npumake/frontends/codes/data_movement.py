"""ONNX operators that move codes become the same operators on floats: DQ before, Q behind.

In QOperator form a MaxPool, Transpose or Gather reads codes directly. Both ends share one grid, so
the added pair rounds nothing. Operators that return indices (ArgMax) need no Q: comparing codes is
comparing their values. The grid is that of the Q before, or of the DQ behind for constant codes and
inputs.
"""

from __future__ import annotations

import numpy as np

from npumake.errors import GraphError
from npumake.frontends.codes.pairs import StoredCodes, quantize_result, real
from npumake.graph import Graph, Node, Value, array
from npumake.graph.qdq import DEQUANTIZE, QUANTIZE, is_dequantize, is_quantize

MOVES = frozenset(
    {
        "Concat",
        "DepthToSpace",
        "Expand",
        "Flatten",
        "Gather",
        "Identity",
        "MaxPool",
        "Pad",
        "Reshape",
        "Resize",
        "Slice",
        "SpaceToDepth",
        "Split",
        "Squeeze",
        "Tile",
        "Transpose",
        "Unsqueeze",
    }
)
PLACES = frozenset({"ArgMax", "ArgMin"})
ALL_CODES = frozenset({"Concat"})  # every input is codes; in other operators only the first


def move_reals(graph: Graph) -> None:
    """Edits in place. Raises GraphError for an operator that computes on codes."""
    grids = _known_grids(graph)
    for node in graph.nodes():
        grid = grids.get(node.inputs[0]) if node.inputs and node.inputs[0] is not None else None
        if grid is not None and not node.domain and node.op_type in MOVES | PLACES:
            _rewrite(graph, node, grid, grids)
        elif node.domain and any(value in grids for value in node.inputs):
            message = f"`{node.name}` ({node.op_type}) computes with codes"
            raise GraphError(message, hint="end the model before it, by `model.outputs`")


def has_moved_codes(graph: Graph) -> bool:
    """Whether an ONNX operator moves codes directly."""
    quantized = {value for node in graph.nodes(QUANTIZE) for value in node.outputs}
    read = {node.inputs[0] for node in graph.nodes(DEQUANTIZE) if array(node.inputs[0]) is None}
    return any(
        not quantized.isdisjoint(node.inputs) or not read.isdisjoint(node.outputs)
        for node in graph.nodes(*MOVES, *PLACES)
    )


def _known_grids(graph: Graph) -> dict[Value | None, StoredCodes]:
    """The grid of each tensor of codes, propagated forwards from every Q and backwards from every
    DQ."""
    grids: dict[Value | None, StoredCodes] = {}
    for node in graph.nodes():
        if is_quantize(node):
            _note(grids, node.outputs[0], node)
        elif is_dequantize(node) and array(node.inputs[0]) is None:
            _note(grids, node.inputs[0], node)
        elif _moves(node) and node.inputs[0] in grids:
            grids.update(dict.fromkeys(node.outputs, grids[node.inputs[0]]))
    for node in reversed(graph.nodes()):
        if _moves(node) and node.outputs[0] in grids and node.inputs[0] is not None:
            grids.setdefault(node.inputs[0], grids[node.outputs[0]])
    return grids


def _note(grids: dict[Value | None, StoredCodes], codes: Value | None, pair: Node) -> None:
    scale, zero_point = (*pair.inputs[1:3], None)[:2]
    if codes is not None and scale is not None:
        grids.setdefault(codes, StoredCodes(codes, scale, zero_point))


def _moves(node: Node) -> bool:
    return not node.domain and node.op_type in MOVES and bool(node.inputs)


def _rewrite(
    graph: Graph, node: Node, grid: StoredCodes, grids: dict[Value | None, StoredCodes]
) -> None:
    count = len(node.inputs) if node.op_type in ALL_CODES else 1
    for index, value in enumerate(node.inputs[:count]):
        if value is not None:
            graph.set_inputs(node, {index: real(graph, grid._replace(codes=value), node)})
    if node.op_type == "Pad":
        _fill_with_reals(graph, node, grid)
    if node.op_type in PLACES:
        return
    for output in node.outputs:
        if output.uses() or output.is_graph_output():
            grids.pop(output, None)
            codes = quantize_result(graph, node, grid.scale, grid.zero_point, output)
            grids[codes] = grid._replace(codes=codes)


def _fill_with_reals(graph: Graph, node: Node, grid: StoredCodes) -> None:
    """Dequantizes the fill code of a Pad (default 0). Raises GraphError for a computed one."""
    fill = node.inputs[2] if len(node.inputs) > 2 else None
    code = np.zeros((), np.int32) if fill is None else array(fill)
    scale, zero_point = array(grid.scale), array(grid.zero_point)
    if code is None or scale is None:
        raise GraphError(f"`{node.name}` (Pad) fills with a code that is computed")
    steps = code.astype(np.int32) - (0 if zero_point is None else zero_point.astype(np.int32))
    filled = (scale * steps).astype(np.float32).reshape(())
    graph.set_inputs(node, {2: graph.constant(f"{node.name}_fill", filled)})
