"""Replaces a control-flow node by the nodes of one branch."""

from __future__ import annotations

import onnx_ir as ir

from npumake.graph.graph import Graph, Node
from npumake.graph.origin import origin, originate


def inline(graph: Graph, node: Node, body: ir.Graph) -> None:
    """The nodes of `body`, one branch of `node`, replace `node` and inherit its origin.

    An Identity keeps the name of a model output if the branch passes a value through.
    """
    results, nodes, constants = list(body.outputs), list(body), dict(body.initializers)
    body.outputs.clear()
    body.initializers.clear()
    body.remove(nodes)
    for name, value in constants.items():  # other branches may use the same names
        value.name = graph.free_name(name)
        graph.model.graph.register_initializer(value)
    for inner in nodes:
        inner.name = graph.free_name(str(inner.name or inner.outputs[0].name))
        for value in filter(lambda value: value.name, inner.outputs):
            value.name = graph.free_name(str(value.name))
        originate(inner, origin(node))
    graph.model.graph.insert_before(node, nodes)
    for old, value in zip(node.outputs, results, strict=True):
        passed = old.is_graph_output() and value.producer() not in nodes
        name = f"{old.name}_taken"
        graph.replace_uses(
            old, graph.insert("Identity", [value], name, before=node) if passed else value
        )
    graph.remove(node)
