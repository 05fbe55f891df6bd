"""x * Sigmoid(x) as one Swish, for a unit that reads it from one table.

Its own pass, not one of PASSES: ONNX has Swish since opset 24, and what only a chip has in one
piece is no matter of the stages that all targets share.
"""

from __future__ import annotations

from npumake.graph import Graph, Node, Value, allow_swish, is_float, producer


def fuse_silu(graph: Graph) -> int:
    """The Swish has the name of the product, and its place."""
    pairs = [(node, gate) for node in graph.nodes("Mul") if (gate := _gate(node)) is not None]
    if not pairs or not allow_swish(graph):
        return 0
    for node, gate in pairs:
        graph.become(node, "Swish", [gate.inputs[0]])
        graph.absorb(node, gate)
    return len(pairs)


def _gate(node: Node) -> Node | None:
    """The Sigmoid of the other factor, which nobody else reads."""
    for x, y in (node.inputs, reversed(node.inputs)):
        maker = None if y is None else producer(y)
        if x is not None and maker is not None and _is_gate(maker, x):
            return maker
    return None


def _is_gate(node: Node, x: Value) -> bool:
    if node.op_type != "Sigmoid" or node.domain or node.inputs[0] is not x or not is_float(x):
        return False
    y = node.outputs[0]
    return len(y.uses()) == 1 and not y.is_graph_output()
