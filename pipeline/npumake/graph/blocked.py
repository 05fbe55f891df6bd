"""Outputs that are handed out as onnxruntime's convolutions write them: in blocks of channels.

Of a tensor (n, c, h, w) the `block` channels of a block lie side by side: (n, c / block, h, w,
block). onnxruntime lays out anew whatever else is to be read of it, one value after the other
(ReorderOutput), which takes longer than many a convolution.
"""

from __future__ import annotations

import onnx

DOMAIN = "com.microsoft.nchwc"
REORDERED = (1, 64, 1, 2)  # channels enough for more than one block of any processor


def blocks_handed_out(graph: onnx.GraphProto, block: int) -> frozenset[str]:
    """Has `graph`, as onnxruntime has rewritten it, hand out in blocks what it can, of which these
    are the names: tensors whose channels fill their blocks."""
    outputs = {output.name for output in graph.output}
    swapped: dict[str, str] = {}  # what is in blocks gives its name to what is laid out anew of it
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
    del graph.node[:]  # to remove one by one takes as long as all the rest
    graph.node.extend(left)
    return frozenset(outputs & swapped.keys())


def _fills(node: onnx.NodeProto, block: int) -> bool:
    attributes = {item.name: item.i for item in node.attribute}
    return attributes["channels"] % block == 0 and not attributes.get("channels_last", 0)


def reordering() -> bytes:
    """A model that lays out anew x, float32 of the shape REORDERED. Fed 0, 1, 2 ... it answers with
    rows, of which as many begin with their own number as there are channels in a block."""
    kind = onnx.TensorProto.FLOAT
    node = onnx.helper.make_node(
        "ReorderOutput", ["x"], ["y"], domain=DOMAIN, channels=REORDERED[1], channels_last=0
    )
    x, y = (onnx.helper.make_tensor_value_info(name, kind, REORDERED) for name in "xy")
    opsets = [onnx.helper.make_opsetid("", 13), onnx.helper.make_opsetid(DOMAIN, 1)]
    graph = onnx.helper.make_graph([node], "reordering", [x], [y])
    return onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()
