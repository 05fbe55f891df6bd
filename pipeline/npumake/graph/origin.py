"""Records which trained nodes a node originates from.

Each node stores the names as JSON in its metadata, from the source file through every later graph.
An inserted node inherits from its neighbor, and an absorbing one from the absorbed. The methods of
Graph do this, so passes need not.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

import onnx_ir as ir

NOTE = "npumake.origin"


def origin(node: ir.Node) -> tuple[str, ...]:
    """Names of the trained nodes that the node computes, the main one first; empty for added nodes
    such as preprocessing."""
    return tuple(json.loads(node.metadata_props.get(NOTE, "[]")))


def originate(node: ir.Node, names: Iterable[str]) -> None:
    """Replaces the node's origins."""
    node.metadata_props.pop(NOTE, None)
    if unique := list(dict.fromkeys(names)):
        node.metadata_props[NOTE] = json.dumps(unique)


def inherit(node: ir.Node, *others: ir.Node) -> None:
    """Adds the origins of the other nodes."""
    text = node.metadata_props.get(NOTE, "[]")
    added = dict.fromkeys(json.dumps(name) for other in others for name in origin(other))
    if text != "[]" and not any(name in text for name in added):  # not read again for each heir
        node.metadata_props[NOTE] = ", ".join([text[:-1], *added]) + "]"
    else:
        originate(node, [name for heir in (node, *others) for name in origin(heir)])


def trace(upgraded: ir.Graph, trained: ir.Graph) -> None:
    """Restores origins after onnx's converter, which keeps most names but no metadata.

    A node is identified by its own name or by the name of an output. Otherwise it replaces a
    trained node with a common input, which that node no longer reads.
    """
    by_name = {str(node.name): node for node in trained}
    by_tensor = {str(value.name): node for node in trained for value in node.outputs}
    now = {str(node.name): node for node in upgraded}
    renamed: dict[str, str] = {}  # output of the replacing node → output of the replaced one

    def read(node: ir.Node | None) -> list[str]:
        inputs = () if node is None else node.inputs
        names = [str(v.name) for v in inputs if v is not None and v.const_value is None]
        return [renamed.get(name, name) for name in names]

    for node in upgraded:
        ancestors = [by_name[str(node.name)]] if str(node.name) in by_name else []
        ancestors += [by_tensor[str(v.name)] for v in node.outputs if str(v.name) in by_tensor]
        if not ancestors:
            ancestors = [
                old
                for old in trained
                if set(read(node)) & (set(read(old)) - set(read(now.get(str(old.name)))))
            ][:1]
            outputs = (v for old in ancestors for v in old.outputs)
            renamed.update((str(a.name), str(b.name)) for a, b in zip(node.outputs, outputs))  # noqa: B905
        makers = [maker for value in node.inputs if value and (maker := value.producer())]
        originate(node, [])
        inherit(node, *(ancestors[:1] or makers))
