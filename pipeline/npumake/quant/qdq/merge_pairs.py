"""Merges equal Q/DQ pairs of a tensor, and refuses 16 bits if the target has none.

onnxruntime writes a Q/DQ for each reader (DedicatedQDQPair). A node runs in integers if a single Q
reads its output.
"""

from __future__ import annotations

from npumake.errors import StageError
from npumake.graph import Graph, Node
from npumake.graph.qdq import QDQ_OPERATORS, QUANTIZE, axis_of, codes_dtype, grid_of
from npumake.targets.target import Target

Key = tuple[object, ...]


def merge_pairs(graph: Graph) -> None:
    """Merges nodes that compute the same codes or real values, in place. The first stays, and so do
    model outputs."""
    first_of: dict[Key, Node] = {}
    for node in graph.nodes(*QDQ_OPERATORS):
        key = _key(node)
        if key is None:
            continue
        first = first_of.setdefault(key, node)
        if first is not node and not node.outputs[0].is_graph_output():
            graph.replace_uses(node.outputs[0], first.outputs[0])
            graph.remove(node)


def _key(node: Node) -> Key | None:
    """The operator, input and parameters of the node; None if its scale is computed."""
    grid = grid_of(node)
    if grid is None:
        return None
    contents = [(str(values.dtype), values.tobytes()) for values in grid]
    return (node.op_type, node.inputs[0], axis_of(node), *contents)


def refuse_wide(graph: Graph, target: Target) -> None:
    """Raises StageError for 16-bit codes if the target has none."""
    if target.int16 != ():
        return
    for node in graph.nodes(QUANTIZE):
        dtype = codes_dtype(node)
        if dtype.itemsize > 1:
            raise StageError(
                f"the model has `{node.inputs[0].name if node.inputs[0] else ''}` in "
                f"{dtype}, and {target.name} has no 16 bits",
                str(node.name),
                "quantize it again with activations of 8 bits",
            )
