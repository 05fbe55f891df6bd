"""Where: constant inputs are clipped to the grid behind the node.

A mask of -1e9 becomes the lowest code anyway. LiteRT's QUANTIZE converts x / scale to int32 before
it saturates, and beyond 2**31 codes the sign is undefined, so the constant is clipped here.
"""

from __future__ import annotations

import numpy as np

from npumake.graph import Graph, Node, array
from npumake.quant.precision.grids import Grid
from npumake.quant.precision.scale_limits import reach_of
from npumake.quant.qdq.pairs import Q

MIN_CODES_CLIPPED = 2.0**20  # smaller constants stay as they are


def clip_where_constants(graph: Graph) -> None:
    """Clips the constants of `graph` in place."""
    for node in graph.nodes("Where"):
        grid = _grid_behind(node)
        if grid is None:
            continue
        for index in (1, 2):
            values = array(node.inputs[index])
            if (
                values is not None
                and np.abs(values).max(initial=0.0) > MIN_CODES_CLIPPED * grid.scale
            ):
                clipped = np.clip(values, *reach_of(grid)).astype(values.dtype)
                name = f"{node.name}_held"
                graph.set_inputs(node, {index: graph.constant(name, clipped)})


def _grid_behind(node: Node) -> Grid | None:
    """The grid of the one Q that reads the output."""
    value = node.outputs[0]
    readers = [use.node for use in value.uses()]
    if value.is_graph_output() or len(readers) != 1 or readers[0].op_type != Q:
        return None
    scale, zero_point = (array(parameter) for parameter in readers[0].inputs[1:3])
    if scale is None or zero_point is None or scale.size != 1:
        return None
    return Grid(scale.reshape(()), zero_point.reshape(()))
