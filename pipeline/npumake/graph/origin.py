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
    if unique := list(dict.fromkeys(names)):
        node.metadata_props[NOTE] = json.dumps(unique)


def inherit(node: ir.Node, *others: ir.Node) -> None:
    """The node also comes from where the others do."""
    originate(node, [name for heir in (node, *others) for name in origin(heir)])


def trace(upgraded: ir.Graph, trained: ir.Graph) -> None:
    """Origins in a graph that onnx's converter wrote, which keeps the names of most tensors and
    nodes but no metadata.

    A node is known by its own name, or by a tensor it makes. Else it stands where a trained node
    stood: it reads what that one read, and that one does so no more.
    """
    by_name = {str(node.name): node for node in trained}
    by_tensor = {str(value.name): node for node in trained for value in node.outputs}
    now = {str(node.name): node for node in upgraded}
    renamed: dict[str, str] = {}  # what a stand-in makes → what was made there

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
