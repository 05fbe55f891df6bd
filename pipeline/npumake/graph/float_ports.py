"""A model whose inputs and outputs in bfloat16, which NumPy lacks, are float32: exact both ways."""

from __future__ import annotations

import onnx

BFLOAT16, FLOAT = onnx.TensorProto.BFLOAT16, onnx.TensorProto.FLOAT


def with_float_ports(model: bytes) -> bytes:
    """Casts behind inputs and in front of outputs; their names stay."""
    proto = onnx.ModelProto.FromString(model)
    graph = proto.graph
    inputs = {port.name: f"{port.name} in 16 bits" for port in graph.input if _is_half(port)}
    outputs = {port.name: f"{port.name} in 16 bits" for port in graph.output if _is_half(port)}
    renamed = inputs | outputs
    for node in graph.node:
        node.input[:] = [renamed.get(name, name) for name in node.input]
        node.output[:] = [renamed.get(name, name) for name in node.output]
    nodes = [
        *(_cast(name, half, BFLOAT16) for name, half in inputs.items()),
        *graph.node,
        *(_cast(half, name, FLOAT) for name, half in outputs.items() if name not in inputs),
    ]
    del graph.node[:], graph.value_info[:]
    graph.node.extend(nodes)
    for port in (*graph.input, *graph.output):
        if _is_half(port):
            port.type.tensor_type.elem_type = FLOAT
    return proto.SerializeToString()


def _is_half(port: onnx.ValueInfoProto) -> bool:
    return port.type.tensor_type.elem_type == BFLOAT16


def _cast(source: str, name: str, to: int) -> onnx.NodeProto:
    return onnx.helper.make_node("Cast", [source], [name], f"{name} cast", to=to)
