"""The nodes of a branch, put where the node that would choose it stands."""

from __future__ import annotations

import onnx_ir as ir

from npumake.graph.graph import Graph, Node
from npumake.graph.origin import origin, originate


def inline(graph: Graph, node: Node, body: ir.Graph) -> None:
    """The nodes of `body`, one of the branches of `node`, take its place and its origin.

    Where a branch gives what it was given, an Identity keeps a model output its name.
    """
    results, nodes, constants = list(body.outputs), list(body), dict(body.initializers)
    body.outputs.clear()
    body.initializers.clear()
    body.remove(nodes)
    for name, value in constants.items():  # another branch may use the same names
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
