"""x * Sigmoid(x) as one Swish, for an NPU that computes it from one table.

Not in PASSES: ONNX has Swish since opset 24, and only some targets use it.
"""

from __future__ import annotations

from collections.abc import Callable

from npumake.graph import Graph, Node, Value, allow_swish, is_float, producer
from npumake.passes.parts import fuse


def _always(gate: Node, product: Node) -> bool:
    return True


def fuse_silu(graph: Graph, may_join: Callable[[Node, Node], bool] = _always) -> int:
    """The Swish takes the name and place of the product. `may_join` says whether a Sigmoid and its
    product become one."""
    gates = ((node, _gate(node)) for node in graph.nodes("Mul"))
    pairs = [(node, gate) for node, gate in gates if gate is not None and may_join(gate, node)]
    if not pairs or not allow_swish(graph):
        return 0
    for node, gate in pairs:
        x = gate.inputs[0]
        assert x is not None
        fuse(graph, [gate, node], "Swish", [x])
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
