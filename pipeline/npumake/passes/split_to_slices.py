"""A Split as one Slice per part, which chips and the integer engine support.

Part i of sizes n_0, n_1 … is  x[n_0 + … + n_{i-1} : n_0 + … + n_i]  along the axis.
"""

from __future__ import annotations

from itertools import accumulate

import numpy as np

from npumake.graph import (
    Graph,
    Node,
    Value,
    attribute,
    open_dimensions,
    producer,
    shape,
    write_for,
)


def split_to_slices(graph: Graph) -> int:
    splits = [node for node in graph.nodes("Split") if not any(map(open_dimensions, node.outputs))]
    for node in splits:
        _rewrite(graph, node)
    return len(splits)


def _rewrite(graph: Graph, split: Node) -> None:
    axis = attribute(split, "axis", 0)
    ends = [*accumulate((shape(part)[axis] for part in split.outputs), initial=0)]
    for index, part in enumerate(split.outputs):
        if part.uses() or part.is_graph_output():
            _slice(graph, split, part, (ends[index], ends[index + 1], axis))
    graph.remove(split)


def _slice(graph: Graph, split: Node, part: Value, where: tuple[int, int, int]) -> None:
    """Produces `part` by a Slice; `where` is (begin, end, axis)."""
    name = f"{split.name}_{split.outputs.index(part)}"
    bounds = [
        graph.constant(f"{name}_{key}", np.array([number]))
        for key, number in zip(("begin", "end", "axis"), where, strict=True)
    ]
    output = graph.insert("Slice", [split.inputs[0], *bounds], name, before=split)
    if (maker := producer(output)) is not None:
        write_for(maker, split.op_type)
    tensor = str(part.name)
    graph.replace_uses(part, output)
    if not output.is_graph_output():  # which already has the name
        graph.rename(output, tensor, holder=part)
