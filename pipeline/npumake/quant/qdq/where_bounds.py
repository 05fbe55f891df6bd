"""What a Where puts in, cut to what the grid behind it holds.

A mask of -1e9 becomes the lowest code, whatever the number. LiteRT's QUANTIZE takes x / scale to
int32 before it saturates, and beyond 2**31 codes the sign is anyone's: the constant is made smaller
instead.
"""

from __future__ import annotations

import numpy as np

from npumake.graph import Graph, Node, array
from npumake.quant.precision.grids import Grid
from npumake.quant.precision.scale_limits import reach_of
from npumake.quant.qdq.pairs import Q

FAR = 2.0**20  # codes; a constant nearer than that is left as it is


def clip_where_constants(graph: Graph) -> None:
    for node in graph.nodes("Where"):
        grid = _grid_behind(node)
        if grid is None:
            continue
        for index in (1, 2):
            values = array(node.inputs[index])
            if values is not None and np.abs(values).max(initial=0.0) > FAR * grid.scale:
                clipped = np.clip(values, *reach_of(grid)).astype(values.dtype)
                name = f"{node.name}_held"
                graph.set_inputs(node, {index: graph.constant(name, clipped)})


def _grid_behind(node: Node) -> Grid | None:
    """The grid that all its readers see it on."""
    value = node.outputs[0]
    readers = [use.node for use in value.uses()]
    if value.is_graph_output() or len(readers) != 1 or readers[0].op_type != Q:
        return None
    scale, zero_point = (array(parameter) for parameter in readers[0].inputs[1:3])
    if scale is None or zero_point is None or scale.size != 1:
        return None
    return Grid(scale.reshape(()), zero_point.reshape(()))
