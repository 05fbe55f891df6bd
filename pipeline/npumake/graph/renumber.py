"""Names that a converter numbered as it happened to come by them, numbered by use instead."""

from __future__ import annotations

import re
from collections import Counter

from npumake.graph.graph import Graph, Node, Value
from npumake.graph.origin import originate
from npumake.graph.part import reads

NUMBER = re.compile(r"__\d+")


def renumber(graph: Graph) -> None:
    """Edit in place: each `name__17` counts from 0 in the order of the nodes, and constants stand
    in the order they are read. The names of inputs and outputs are the world's and stay."""
    order: dict[Value, None] = {}
    for node in graph.nodes():
        order |= dict.fromkeys((*reads(node), *node.outputs))
    public = {*graph.inputs, *graph.outputs}
    chosen: list[Value | Node] = [v for v in order if v not in public and _is_numbered(v)]
    chosen += [node for node in graph.nodes() if _is_numbered(node)]
    counts: Counter[str] = Counter()
    names = []
    for thing in chosen:
        base = NUMBER.sub("", str(thing.name))
        names.append(f"{base}__{counts[base]}")
        counts[base] += 1
    for number, thing in enumerate(chosen):
        thing.name = f"__renumbered {number}"  # out of the way of the names to come
    for thing, name in zip(chosen, names, strict=True):
        thing.name = name
    for node in graph.nodes():  # nobody knows it by the old one
        originate(node, [str(node.name)])
    constants = graph.model.graph.initializers
    for value in order:
        if value.name in constants:
            constants[str(value.name)] = constants.pop(str(value.name))


def _is_numbered(thing: Value | Node) -> bool:
    return NUMBER.search(str(thing.name)) is not None
