"""Where: constant inputs are clipped to the grid behind the node.

A mask of -1e9 becomes the lowest code anyway. LiteRT's QUANTIZE converts x / scale to int32 before
it saturates, and beyond 2**31 codes the sign is undefined, so the constant is clipped here.
"""

from __future__ import annotations

import numpy as np

from npumake.graph import Graph, array
from npumake.graph.qdq import scalar_grid_of, sole_quantizer
from npumake.quant.precision.scale_limits import reach_of

MIN_CODES_CLIPPED = 2.0**20  # smaller constants stay as they are


def clip_where_constants(graph: Graph) -> None:
    """Clips the constants of `graph` in place."""
    for node in graph.nodes("Where"):
        grid = scalar_grid_of(sole_quantizer(node.outputs[0]))
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
