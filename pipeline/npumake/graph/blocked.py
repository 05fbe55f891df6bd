"""Outputs in the blocked layout of onnxruntime's convolutions.

A tensor (n, c, h, w) is stored as (n, c / block, h, w, block). onnxruntime converts it back with a
ReorderOutput for any other reader, which takes longer than many a convolution.
"""

from __future__ import annotations

import onnx

DOMAIN = "com.microsoft.nchwc"
REORDERED = (1, 64, 1, 2)  # enough channels for more than one block on any processor


def blocks_handed_out(graph: onnx.GraphProto, block: int) -> frozenset[str]:
    """Makes outputs of onnxruntime's rewritten `graph` blocked where their channels fill the
    blocks, in place. Returns their names."""
    outputs = {output.name for output in graph.output}
    swapped: dict[str, str] = {}  # swaps the names of blocked and converted tensors
    for node in graph.node:
        if node.op_type == "ReorderOutput" and node.domain == DOMAIN and _fills(node, block):
            blocks, laid_out = node.input[0], node.output[0]
            if laid_out in outputs and blocks not in outputs and blocks not in swapped:
                swapped |= {blocks: laid_out, laid_out: blocks}
    for node in graph.node:
        for names in (node.input, node.output):
            names[:] = [swapped.get(name, name) for name in names]
    needed = outputs.union(*(node.input for node in graph.node))
    left = [n for n in graph.node if n.op_type != "ReorderOutput" or n.output[0] in needed]
    del graph.node[:]  # removing nodes one by one takes as long as the rest
    graph.node.extend(left)
    return frozenset(outputs & swapped.keys())


def _fills(node: onnx.NodeProto, block: int) -> bool:
    attributes = {item.name: item.i for item in node.attribute}
    return attributes["channels"] % block == 0 and not attributes.get("channels_last", 0)


def reordering() -> bytes:
    """A model that converts a blocked float32 x of shape REORDERED. For inputs 0, 1, 2 ... the
    number of rows that start with their own index is the block size."""
    kind = onnx.TensorProto.FLOAT
    node = onnx.helper.make_node(
        "ReorderOutput", ["x"], ["y"], domain=DOMAIN, channels=REORDERED[1], channels_last=0
    )
    x, y = (onnx.helper.make_tensor_value_info(name, kind, REORDERED) for name in "xy")
    opsets = [onnx.helper.make_opsetid("", 13), onnx.helper.make_opsetid(DOMAIN, 1)]
    graph = onnx.helper.make_graph([node], "reordering", [x], [y])
    return onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()
