"""Names of what a decomposition adds, so that an operator may occur any number of times."""

from __future__ import annotations

from collections.abc import Collection

from npumake.graph.free_names import Suffixes, free_name
from npumake.graph.graph import Graph, Node, Value


def name_after(graph: Graph, node: Node, used: Suffixes) -> None:
    """Renames what `graph` adds to the `node` that it decomposes: the names begin with the node's
    and are free. What the node reads and makes keeps its names. The new names are then used."""
    borders = {value.name for value in (*node.inputs, *node.outputs, *graph.inputs) if value}
    for value in graph.values().values():
        if value.name not in borders:
            graph.rename(value, _free(value.name, node, used))
    own = {inner.name for inner in graph.nodes()}
    for inner in graph.nodes():
        if inner.name != node.name:
            inner.name = _inner_name(inner, node, own, borders, used)
            own.add(inner.name)


def _inner_name(
    inner: Node,
    node: Node,
    own: Collection[str | None],
    borders: Collection[str | None],
    used: Suffixes,
) -> str:
    """That of its output. What makes the node's first output takes the node's, if it is free."""
    first: Value = inner.outputs[0]
    if first.name not in borders:
        return str(first.name)
    if first.name == node.outputs[0].name and node.name not in own:
        return str(node.name)
    return _free(inner.name, node, used)


def _free(name: str | None, node: Node, used: Suffixes) -> str:
    first = f"{node.name}_"
    return free_name(str(name) if str(name).startswith(first) else f"{first}{name}", used)
