"""Finds the arithmetic from distances to boxes, which int16_smart keeps in 16 bits.

    lt, rb = halves of the projected distances     x1y1 = anchor - lt     x2y2 = anchor + rb
    center = (x1y1 + x2y2) / 2     size = x2y2 - x1y1     boxes = concat(center, size) * stride

It starts behind the DFL projection and ends where boxes are joined with other tensors. Scores, mask
coefficients and prototypes are not part of it. Source: the Ara2 Converter's description of
int16_smart; the node pattern is that of a public Ultralytics head.
"""

from __future__ import annotations

from npumake.graph import Graph, Node, Value, producer

HALVES = ("Slice", "Split")
ARITHMETIC = ("Add", "Concat", "Div", "Mul", "Sub")


def distance_to_box(graph: Graph) -> tuple[str, ...]:
    """The names of these nodes in graph order; empty without such a head."""
    dependent = _input_dependent(graph)
    chosen: dict[Node, None] = {}
    for sub in graph.nodes("Sub"):
        anchor, lt = sub.inputs
        if anchor is None or lt is None or anchor in dependent or not (halves := _halves(lt)):
            continue
        for add in graph.nodes("Add"):
            rb = next((value for value in add.inputs if value in dependent), None)
            if rb is not None and _source(rb) is _source(lt) and set(add.inputs) - dependent:
                chosen |= dict.fromkeys([halves, _maker(rb), sub, add])
    if not chosen:
        return ()
    box_values = {value for node in chosen for value in node.outputs}
    for node in graph.nodes(*ARITHMETIC):
        operands = [value for value in node.inputs if value in dependent]
        if operands and set(operands) <= box_values:
            chosen[node] = None
            box_values.update(node.outputs)
    return tuple(str(node.name) for node in graph.nodes() if node in chosen)


def _input_dependent(graph: Graph) -> set[Value]:
    """The values that depend on the inputs; all others are constant."""
    values: set[Value] = set(graph.inputs)
    for node in graph.nodes():
        if any(value in values for value in node.inputs):
            values.update(node.outputs)
    return values


def _halves(value: Value) -> Node | None:
    node = producer(value)
    return node if node is not None and node.op_type in HALVES else None


def _maker(value: Value) -> Node:
    node = producer(value)
    assert node is not None
    return node


def _source(value: Value) -> Value | None:
    """The tensor that was split into halves."""
    node = _halves(value)
    return node.inputs[0] if node else None
