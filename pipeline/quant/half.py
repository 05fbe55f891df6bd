"""A node in float16: all it reads and makes is rounded to float16, and computed in float.

The rounding is a Cast to float16 and one back, what Q/DQ is to an integer grid; a constant is
rounded where it stands. What is beyond float16 becomes infinite, in a constant its largest number.
"""

from __future__ import annotations

import numpy as np

from pipeline.engine.fusion import result
from pipeline.graph import Graph, Node, Value, array, is_float, producer, type_number

LARGEST = float(np.finfo(np.float16).max)


def compute_in_half(graph: Graph, node: Node) -> None:
    """Round what the node reads, and what it and the clamp it absorbs make, for every reader."""
    for index, value in enumerate(tuple(node.inputs)):
        if value is None or not is_float(value) or _is_rounded(value):
            continue
        values = array(value)
        if values is None:
            graph.set_inputs(node, {index: _rounded(graph, value, before=node)})
        else:
            held = np.clip(values, -LARGEST, LARGEST).astype(np.float16).astype(np.float32)
            graph.set_inputs(node, {index: graph.constant(f"{value.name}_half", held)})
    made = result(node)
    uses = [(use.node, use.idx) for use in tuple(made.uses())]
    rounded = _rounded(graph, made)
    if made.is_graph_output():
        graph.replace_output(made, rounded)
    for reader, index in uses:
        graph.set_inputs(reader, {index: rounded})


def _rounded(graph: Graph, value: Value, before: Node | None = None) -> Value:
    name, maker = str(value.name), producer(value)
    near = {"after": maker} if before is None else {"before": before}
    half = graph.insert("Cast", [value], f"{name}_half", **near, to=type_number("float16"))
    return graph.insert(
        "Cast", [half], f"{name}_rounded", producer(half), to=type_number("float32")
    )


def _is_rounded(value: Value) -> bool:
    maker = producer(value)
    before = None if maker is None or maker.op_type != "Cast" else maker.inputs[0]
    return before is not None and before.dtype is not None and before.dtype.numpy() == np.float16
