"""Which nodes of the trained model a node came from.

Each node carries the names as JSON in its metadata, from the file it was read from through every
later graph. A node that is inserted inherits from its neighbour, one that absorbs others from
them: the verbs of Graph see to it, so that no pass has to.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

import onnx_ir as ir

NOTE = "npumake.origin"


def origin(node: ir.Node) -> tuple[str, ...]:
    """The names of the trained nodes it computes, the main one first; empty for a node that was
    put in front of the trained model, such as its preprocessing."""
    return tuple(json.loads(node.metadata_props.get(NOTE, "[]")))


def originate(node: ir.Node, names: Iterable[str]) -> None:
    """Write down where the node comes from, whatever it said before."""
    node.metadata_props.pop(NOTE, None)
    if found := list(dict.fromkeys(names)):
        node.metadata_props[NOTE] = json.dumps(found)


def inherit(node: ir.Node, *others: ir.Node) -> None:
    """The node also comes from where the others do."""
    originate(node, [name for heir in (node, *others) for name in origin(heir)])


def trace(upgraded: ir.Graph, trained: ir.Graph) -> None:
    """Origins in a graph that onnx's converter wrote, which keeps the names of tensors and of most
    nodes but no metadata.

    A node is known by its own name, by the tensor it makes, or as what stands where a trained node
    stood: between the tensor that node read and whoever reads it now.
    """
    by_name = {str(node.name): node for node in trained}
    by_tensor = {str(value.name): node for node in trained for value in node.outputs}
    now = {str(node.name): _read(node) for node in upgraded}
    moved = {
        name: node
        for node in trained
        for name in _read(node)
        if name not in now.get(str(node.name), ())
    }
    for node in upgraded:
        made = [by_tensor[str(v.name)] for v in node.outputs if str(v.name) in by_tensor]
        known = [by_name[str(node.name)]] if str(node.name) in by_name else made
        stood = [moved[name] for name in _read(node) if name in moved]
        makers = [maker for value in node.inputs if value and (maker := value.producer())]
        originate(node, [])
        inherit(node, *(known or stood or makers))


def _read(node: ir.Node) -> tuple[str, ...]:
    return tuple(str(value.name) for value in node.inputs if value is not None)
