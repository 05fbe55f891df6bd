"""Float16 nodes: inputs and output are rounded to float16 and computed in float32.

A Cast to float16 and back rounds a tensor, as Q/DQ does for an integer grid; constants are rounded
in place. Values beyond float16 become infinite; constants are clipped to its largest number.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from npumake.engine.fusion import absorbed, result
from npumake.graph import (
    Graph,
    Node,
    Value,
    array,
    declare,
    is_float,
    mark_float16,
    producer,
    shape,
    type_number,
)

MAX_FLOAT16 = float(np.finfo(np.float16).max)


def compute_in_half(graph: Graph, nodes: Collection[Node]) -> None:
    """Rounds inputs and outputs of these nodes and of the clamps that they absorb, each once."""
    rounded: dict[Value, Value] = {}
    for node in [node for node in graph.nodes() if node in nodes]:
        mark_float16(node)
        if (clamp := absorbed(node)) is not None:
            mark_float16(clamp)
        for index, value in enumerate(tuple(node.inputs)):
            if value is None or value in rounded.values() or not is_float(value):
                continue
            if value not in rounded:
                rounded[value] = _rounded(graph, value, node)
            graph.set_inputs(node, {index: rounded[value]})
        output = result(node)
        uses = [(use.node, use.idx) for use in tuple(output.uses())]
        rounded[output] = _rounded(graph, output)
        if output.is_graph_output():
            graph.replace_output(output, rounded[output])
        for reader, index in uses:
            graph.set_inputs(reader, {index: rounded[output]})


def _rounded(graph: Graph, value: Value, before: Node | None = None) -> Value:
    name, values, maker = str(value.name), array(value), producer(value)
    if values is not None:
        halves = np.clip(values, -MAX_FLOAT16, MAX_FLOAT16).astype(np.float16).astype(np.float32)
        return graph.constant(f"{name}_rounded", halves)
    first = {"to": type_number("float16")}
    half = graph.insert("Cast", [value], f"{name}_half", maker, before=before, **first)
    back = type_number("float32")
    real = graph.insert("Cast", [half], f"{name}_rounded", producer(half), to=back)
    if value.shape is not None:
        declare(real, shape(value), value)  # layers look up the shape of their input
    return real
