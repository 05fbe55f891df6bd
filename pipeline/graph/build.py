"""A graph made from nothing, for the readers of formats that are not ONNX."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx_ir as ir

from pipeline.graph.graph import Graph

IR_VERSION = 9
OPSET = 17  # the newest whose operators every reader here writes; it has HardSwish and Pad by input


def empty(inputs: Mapping[str, tuple[str, Sequence[int]]]) -> Graph:
    """A graph of these inputs, each of a NumPy type and a shape, without nodes or outputs."""
    fed = [
        ir.Value(
            name=name,
            type=ir.TensorType(ir.DataType.from_numpy(np.dtype(dtype))),
            shape=ir.Shape(shape),
        )
        for name, (dtype, shape) in inputs.items()
    ]
    graph = ir.Graph(fed, [], nodes=[], opset_imports={"": OPSET}, name="graph")
    return Graph(ir.Model(graph, ir_version=IR_VERSION))
