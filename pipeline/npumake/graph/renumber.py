"""Renumbers names that a converter numbered at random, by order of use."""

from __future__ import annotations

import re
from collections import Counter

from npumake.graph.graph import Graph, Node, Value
from npumake.graph.origin import originate
from npumake.graph.part import reads

NUMBER = re.compile(r"__\d+")


def renumber(graph: Graph) -> None:
    """Edits in place: every `name__17` is renumbered from 0 in node order, and constants are sorted
    by first use. Inputs and outputs keep their names."""
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
        thing.name = f"__renumbered {number}"  # avoids collisions with the new names
    for thing, name in zip(chosen, names, strict=True):
        thing.name = name
    for node in graph.nodes():  # unknown under its old name
        originate(node, [str(node.name)])
    constants = graph.model.graph.initializers
    for value in order:
        if value.name in constants:
            constants[str(value.name)] = constants.pop(str(value.name))


def _is_numbered(thing: Value | Node) -> bool:
    return NUMBER.search(str(thing.name)) is not None
