"""x * Sigmoid(x) as one Swish, for an NPU that computes it from one table.

Not in PASSES: ONNX has Swish since opset 24, and only some targets use it.
"""

from __future__ import annotations

from npumake.graph import Graph, Node, Value, allow_swish, is_float, producer


def fuse_silu(graph: Graph) -> int:
    """The Swish takes the name and place of the product."""
    pairs = [(node, gate) for node in graph.nodes("Mul") if (gate := _gate(node)) is not None]
    if not pairs or not allow_swish(graph):
        return 0
    for node, gate in pairs:
        graph.become(node, "Swish", [gate.inputs[0]])
        graph.absorb(node, gate)
    return len(pairs)


def _gate(node: Node) -> Node | None:
    """The Sigmoid of the other factor, if nothing else reads it."""
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
