"""Cancels Transposes that undo each other, also across elementwise nodes.

    T_q(T_p(x)) = T_r(x)     r[i] = p[q[i]]     nothing if r is the identity
    f(T_p(x), T_p(y)) = T_p(f(x, y))            for every elementwise f; Concat with its axis moved

A region is a set of connected elementwise nodes. Turned by p, it reads x instead of T_p(x), and
readers of T_q of its result, q the inverse of p, read the result directly. Every other border needs
a new Transpose, except that constants are transposed in place. A region is turned only if fewer
Transposes remain, so the pass ends. A Q/DQ pair with one scale is elementwise; no code changes.

A Transpose that moves only axes of size 1 is removed before a Reshape.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from npumake.graph import Graph, Node, Value, array, attribute, producer
from npumake.passes.regions import ELEMENTWISE, operands, rank, region

Order = tuple[int, ...]


class _Turn(NamedTuple):
    """A region, the axis order of its readers, and the Transposes on its border."""

    nodes: list[Node]
    order: Order
    into: list[Value]  # computed values that it reads from outside
    out: list[Value]  # its values that are read outside


def cancel_transposes(graph: Graph) -> int:
    changed = 0
    while count := _merged(graph) + _unread_moves(graph) + _turned(graph):
        changed += count
    return changed


# -- consecutive Transposes ----------------------------------------------------------------------


def _merged(graph: Graph) -> int:
    """Merges consecutive Transposes."""
    count = 0
    for node in graph.nodes("Transpose"):
        before = _transpose(node.inputs[0])
        if before is None or before.inputs[0] is None:
            continue
        first, second = _order(before), _order(node)
        if first is None or second is None:
            continue
        order = tuple(first[axis] for axis in second)
        whole = order == tuple(range(len(order)))
        if whole and node.outputs[0].is_graph_output() and _is_border(before.inputs[0]):
            continue
        graph.set_inputs(node, {0: before.inputs[0]})
        graph.set_attributes(node, perm=order)
        if whole:
            graph.bypass(node)
        _drop(graph, before)
        count += 1
    return count


def _unread_moves(graph: Graph) -> int:
    """Removes Transposes that keep the order of elements, if only Reshapes read them."""
    count = 0
    for node in graph.nodes("Transpose"):
        if _keeps_row(node) and _readers_reshape(node) and graph.bypass(node):
            count += 1
    return count


def _keeps_row(node: Node) -> bool:
    x, order = node.inputs[0], _order(node)
    if x is None or x.shape is None or order is None:
        return False
    moved = [axis for axis in order if x.shape[axis] != 1]
    return moved == sorted(moved)


def _readers_reshape(node: Node) -> bool:
    output = node.outputs[0]
    readers = [use.node for use in output.uses()]
    return bool(readers) and not output.is_graph_output() and all(map(_names_every_size, readers))


def _names_every_size(node: Node) -> bool:
    """Whether the node reshapes to constant sizes without 0, which would copy an input size."""
    if node.op_type != "Reshape" or node.domain:
        return False
    sizes = array(node.inputs[1])
    return sizes is not None and bool((sizes != 0).all())


# -- regions -------------------------------------------------------------------------------


def _turned(graph: Graph) -> int:
    """Turns the regions with a gain, in order. Those beside a turned one wait: consecutive
    Transposes are merged before."""
    visited: set[Node] = set()
    turned: set[Node] = set()  # the turned regions and what is beside them
    total = 0
    for node in graph.nodes(*sorted(ELEMENTWISE)):
        if node in visited or node in turned:
            continue
        for turn in _turns(node, visited):
            saved = _saved(turn)
            if saved > 0 and turned.isdisjoint(around := _around(turn)):
                turned |= around
                _turn(graph, turn)
                total += saved
                break
    return total


def _around(turn: _Turn) -> set[Node]:
    """The region, and the Transposes and elementwise nodes up to two nodes beside it: those whose
    own gain its turn may change."""
    beside = [maker for value in turn.into if (maker := producer(value)) is not None]
    beside += [use.node for value in (*turn.into, *turn.out) for use in value.uses()]
    for node in tuple(dict.fromkeys(beside)):
        beside += [maker for value in operands(node) if (maker := producer(value)) is not None]
        beside += [use.node for value in node.outputs for use in value.uses()]
    return {*turn.nodes, *(n for n in beside if n.op_type in (*ELEMENTWISE, "Transpose"))}


def _turns(start: Node, visited: set[Node]) -> Iterator[_Turn]:
    """The region around `start`, once per axis order that it reads."""
    if rank(start) is None:
        return
    nodes = region(start)
    visited |= set(nodes)
    into = [value for node in nodes for value in operands(node) if producer(value) not in nodes]
    computed = [value for value in dict.fromkeys(into) if array(value) is None]
    out = [node.outputs[0] for node in nodes if _leaves(node.outputs[0], nodes)]
    orders = (_order(maker) for value in computed if (maker := _transpose(value)) is not None)
    for order in dict.fromkeys(order for order in orders if order is not None):
        yield _Turn(list(nodes), order, computed, out)


def _leaves(value: Value, nodes: dict[Node, None]) -> bool:
    return value.is_graph_output() or any(use.node not in nodes for use in value.uses())


def _saved(turn: _Turn) -> int:
    """The number of Transposes that turning the region removes."""
    inside = set(turn.nodes)
    saved = 0
    for value in turn.into:
        maker = _transpose(value)
        if maker is None or _order(maker) != turn.order:
            saved -= 1
        elif not value.is_graph_output() and all(use.node in inside for use in value.uses()):
            saved += 1
    for value in turn.out:
        undone, others = _readers(value, turn.order, inside)
        saved += len(undone) - bool(others or value.is_graph_output())
    return saved


def _readers(value: Value, order: Order, inside: set[Node]) -> tuple[list[Node], list[Node]]:
    """Readers outside the region: Transposes that undo the order, and the others. A value has one
    name, so of two model outputs one Transpose stays."""
    undone: list[Node] = []
    others: list[Node] = []
    for node in dict.fromkeys(use.node for use in value.uses()):
        second = any(n.outputs[0].is_graph_output() for n in undone)
        if node in inside:
            continue
        if _undoes(node, order) and not (second and node.outputs[0].is_graph_output()):
            undone.append(node)
        else:
            others.append(node)
    return undone, others


def _turn(graph: Graph, turn: _Turn) -> None:
    back = _inverse(turn.order)
    inside = set(turn.nodes)
    for value in turn.into:
        maker = _transpose(value)
        if maker is not None and _order(maker) == turn.order and maker.inputs[0] is not None:
            graph.replace_readers(value, maker.inputs[0], inside)
            _drop(graph, maker)
        else:
            name = f"{value.name}_turned"
            turned = graph.insert("Transpose", [value], name, producer(value), perm=back)
            graph.set_layout(turned, back, value)
            graph.replace_readers(value, turned, inside)
    for node in turn.nodes:
        _turn_constants(graph, node, back)
        if node.op_type == "Concat":
            graph.set_attributes(node, axis=turn.order[attribute(node, "axis") % len(back)])
        graph.set_layout(node.outputs[0], back, node.outputs[0])
    for value in turn.out:
        _turn_back(graph, value, turn.order, inside)


def _turn_constants(graph: Graph, node: Node, back: Order) -> None:
    for index, value in enumerate(operands(node)):
        values = array(value)
        if values is None or values.ndim == 0:
            continue
        whole = values.reshape((1,) * (len(back) - values.ndim) + values.shape)
        turned = graph.constant(f"{value.name}_turned", whole.transpose(back))
        graph.set_inputs(node, {index: turned})


def _turn_back(graph: Graph, value: Value, order: Order, inside: set[Node]) -> None:
    """Readers that undid the order read the value directly; the others read it transposed
    back."""
    undone, others = _readers(value, order, inside)
    if others or value.is_graph_output():
        node = producer(value)
        put_back = graph.insert("Transpose", [value], f"{value.name}_back", node, perm=order)
        graph.set_layout(put_back, order, value)
        graph.replace_readers(value, put_back, others)
        if value.is_graph_output():
            graph.replace_output(value, put_back)
    for node in undone:
        graph.replace_uses(node.outputs[0], value)
        graph.remove(node)


# -- questions -----------------------------------------------------------------------------


def _transpose(value: Value | None) -> Node | None:
    """The Transpose that produces the value."""
    maker = None if value is None else producer(value)
    return (
        maker if maker is not None and maker.op_type == "Transpose" and not maker.domain else None
    )


def _order(node: Node) -> Order | None:
    """The permutation; None if it is omitted and the rank is unknown."""
    perm = attribute(node, "perm")
    if perm is not None:
        return tuple(perm)
    out_shape = node.outputs[0].shape
    return None if out_shape is None else tuple(reversed(range(len(out_shape))))


def _undoes(node: Node, order: Order) -> bool:
    return node.op_type == "Transpose" and not node.domain and _order(node) == _inverse(order)


def _inverse(order: Sequence[int]) -> Order:
    return tuple(int(axis) for axis in np.argsort(order))


def _is_border(value: Value) -> bool:
    """Whether the value is a model input or output, whose name is fixed."""
    return producer(value) is None or value.is_graph_output()


def _drop(graph: Graph, node: Node) -> None:
    """Removes the node if its output is unread."""
    output = node.outputs[0]
    if not output.uses() and not output.is_graph_output():
        graph.remove(node)
