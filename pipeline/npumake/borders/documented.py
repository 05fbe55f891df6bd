"""Stage files in the input form that hb_mapper and hb_compile document for pictures.

    float stages           float, in the trained layout
    hb_mapper's quantized  int8 = pixel - 128; NHWC if the chip takes NHWC

A build uses one form in all stages. The metadata key `NOTE` lists the nodes put in front of each
picture, so that `as_built` can restore the stage.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from npumake.borders.images import images
from npumake.graph import Graph, Node, Value, attribute, shape, type_number

NOTE = "npumake.documented"
ORDERS = {("NHWC", "NCHW"): (0, 3, 1, 2), ("NCHW", "NHWC"): (0, 2, 3, 1)}
REAL, TURNED = "real", "turned"
Layouts = Mapping[str, tuple[str, str]]


def as_trained(graph: Graph, layouts: Layouts) -> Graph:
    """A copy with pictures in the trained layout; `layouts` maps each to (fed, trained)."""
    graph = graph.copy()
    for name in sorted(images(graph) & layouts.keys()):
        if order := ORDERS.get(layouts[name]):
            value = graph.values()[name]
            if not _without_turn(graph, value, order):
                _with_turn(graph, value, order)
    return graph.with_shapes()


def as_turned(graph: Graph, layouts: Layouts) -> Graph:
    """As `as_trained`, but reversible by `as_built`."""
    graph, noted = graph.copy(), {}
    for name in sorted(images(graph) & layouts.keys()):
        if order := ORDERS.get(layouts[name]):
            noted[name] = _with_turn(graph, graph.values()[name], order)
    return _noting(graph, noted)


def as_codes(graph: Graph, layouts: Layouts) -> Graph:
    """A copy with pictures as int8 codes; `layouts` maps each to (layout here, new layout)."""
    graph, noted = graph.copy(), {}
    for name in sorted(images(graph) & layouts.keys()):
        value = graph.values()[name]
        real = _put_in_front(graph, value, "Cast", f"{name}_real", to=type_number("float32"))
        graph.feed_as(value, "int8", shape(value))
        entry = {REAL: str(real.name)}
        if order := ORDERS.get(layouts[name]):
            entry |= _with_turn(graph, value, order)
        noted[name] = entry
    return _noting(graph, noted)


def as_built(graph: Graph) -> Graph:
    """Undoes `as_turned` and `as_codes`; returns any other graph unchanged."""
    noted = json.loads(graph.metadata.get(NOTE, "{}"))
    if not noted:
        return graph
    graph = graph.copy()
    for name, entry in noted.items():
        value = graph.values()[name]
        for key in (TURNED, REAL):
            if key in entry:
                (node,) = graph.find(entry[key])
                graph.feed_past(node, value)
    graph.set_metadata({NOTE: "{}"})
    return graph.with_shapes()


def _without_turn(graph: Graph, value: Value, order: Sequence[int]) -> bool:
    """Removes the Transpose in front; False if the picture has another reader."""
    readers = [use.node for use in value.uses()]
    if len(readers) != 1 or not _turns(readers[0], order):
        return False
    graph.feed_past(readers[0], value)
    return True


def _turns(node: Node, order: Sequence[int]) -> bool:
    is_turn = node.op_type == "Transpose" and not node.outputs[0].is_graph_output()
    return is_turn and tuple(attribute(node, "perm", ())) == tuple(order)


def _with_turn(graph: Graph, value: Value, order: Sequence[int]) -> dict[str, str]:
    """Feeds the value with its axes in `order`; a Transpose behind it undoes that."""
    kind = "int8" if value.dtype is not None and value.dtype.name == "INT8" else "float32"
    perm = _inverse(order)
    output = _put_in_front(graph, value, "Transpose", f"{value.name}_turned", perm=perm)
    graph.feed_as(value, kind, _turned(shape(value), order))
    return {TURNED: str(output.name)}


def _put_in_front(graph: Graph, value: Value, op_type: str, name: str, **attributes: Any) -> Value:
    """Inserts a node behind the input; all readers of the input now read its output."""
    readers = [use.node for use in tuple(value.uses())]
    output = graph.insert(op_type, [value], name, **attributes)
    graph.replace_readers(value, output, readers)
    return output


def _inverse(order: Sequence[int]) -> list[int]:
    return [list(order).index(axis) for axis in range(len(order))]


def _turned(size: Sequence[int], order: Sequence[int]) -> tuple[int, ...]:
    return tuple(size[axis] for axis in order)


def _noting(graph: Graph, noted: Mapping[str, object]) -> Graph:
    if noted:
        graph.set_metadata({NOTE: json.dumps(noted, sort_keys=True)})
    return graph.with_shapes()
