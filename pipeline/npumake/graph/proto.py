"""Normalizes an ONNX file as protobuf before it becomes a Graph.

Normalized means: all weights inside the file and dense, and no model functions. A few bytes of a
file can declare gigabytes, so every expansion is bounded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import prod

import google.protobuf.message
import numpy as np
import onnx

from npumake.errors import GraphError
from npumake.graph.qdq import DEQUANTIZE
from npumake.graph.wire import bytes_without_weights

MAX_DENSE_BYTES = 1 << 28  # bytes after expanding sparse weights
MAX_INLINED_NODES = 100_000  # nodes after inlining functions
MAX_CALLS = 50  # depth of nested function calls

_GRIDS = DEQUANTIZE.encode()
WIDE_BIAS = "npumake.wide_bias"  # key in a node's metadata
_BRANCHES = (b'"\x02If', b'"\x04Loop', b'"\x04Scan')  # a node's operator type as serialized

FunctionId = tuple[str, str, str]


def graphs(proto: onnx.ModelProto) -> Iterator[onnx.GraphProto]:
    """The main graph, and those in branches, loop bodies and functions."""
    yield proto.graph
    for nodes in (proto.graph.node, *(function.node for function in proto.functions)):
        for node in _nested(nodes):
            yield from bodies(node)


def nodes(proto: onnx.ModelProto) -> Iterator[onnx.NodeProto]:
    """Every node, also in branches, loop bodies and functions."""
    yield from _nested(proto.graph.node)
    for function in proto.functions:
        yield from _nested(function.node)


def tensors(proto: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    """Every dense tensor of the model."""
    for graph in graphs(proto):
        yield from graph.initializer
    for node in nodes(proto):
        for item in node.attribute:
            if item.HasField("t"):
                yield item.t
            yield from item.tensors


def densify(proto: onnx.ModelProto) -> None:
    """Makes sparse weights dense, in place. Raises GraphError beyond MAX_DENSE_BYTES."""
    room = MAX_DENSE_BYTES
    for graph in graphs(proto):
        for sparse in graph.sparse_initializer:
            room = _room(sparse, room)
            graph.initializer.append(_dense(sparse))
        graph.ClearField("sparse_initializer")
    for node in nodes(proto):
        for item in node.attribute:
            if node.op_type == "Constant" and item.name == "sparse_value":
                room = _room(item.sparse_tensor, room)
                dense = _dense(item.sparse_tensor)
                item.CopyFrom(onnx.helper.make_attribute("value", dense))


def open_unknown_sizes(proto: onnx.ModelProto) -> None:
    """Makes a size of -1, which some exporters write, an open dimension, in place."""
    for graph in graphs(proto):
        for value in (*graph.input, *graph.output, *graph.value_info):
            for dim in value.type.tensor_type.shape.dim:
                if dim.dim_value == -1:
                    dim.ClearField("dim_value")


def refuse_endless_calls(proto: onnx.ModelProto) -> None:
    """Raises GraphError for functions that call each other in a cycle, or inline to more than
    MAX_INLINED_NODES nodes (each may call the one before it twice)."""
    bodies = {(f.domain, f.name, f.overload): f for f in proto.functions}
    sizes: dict[FunctionId, int] = {}
    open_calls: set[FunctionId] = set()

    def size(body: Iterable[onnx.NodeProto]) -> int:
        total = 0
        for node in _nested(body):
            called = (node.domain, node.op_type, node.overload)
            total += measured(called) if called in bodies else 1
        if total > MAX_INLINED_NODES:
            raise GraphError(f"written out, its functions are more than {MAX_INLINED_NODES} nodes")
        return total

    def measured(called: FunctionId) -> int:
        if called in open_calls or len(open_calls) > MAX_CALLS:
            raise GraphError(f"the model's function `{called[1]}` ends up calling itself")
        if called not in sizes:
            open_calls.add(called)
            sizes[called] = size(bodies[called].node)
            open_calls.remove(called)
        return sizes[called]

    size(proto.graph.node)


def at_one_opset(proto: onnx.ModelProto) -> None:
    """Sets functions of another opset to the model's, in place. Raises GraphError if one of
    their operators differs between the two."""
    imported = {opset.domain: opset.version for opset in proto.opset_import}
    for function in proto.functions:
        for opset in function.opset_import:
            version = imported.setdefault(opset.domain, opset.version)
            if version == opset.version:
                continue
            for node in _nested(function.node):
                if node.domain == opset.domain and _differs(node, opset.version, version):
                    raise GraphError(
                        f"the model's function `{function.name}` uses `{node.op_type}` of opset "
                        f"{opset.version}, the model that of {version}",
                        hint="export it again with one opset",
                    )
            opset.version = version
    for domain in sorted(imported.keys() - {opset.domain for opset in proto.opset_import}):
        proto.opset_import.append(onnx.helper.make_opsetid(domain, imported[domain]))


def _differs(node: onnx.NodeProto, first: int, second: int) -> bool:
    def since(version: int) -> int:
        try:
            return onnx.defs.get_schema(node.op_type, version, node.domain).since_version
        except onnx.defs.SchemaError:
            return 0

    return since(first) != since(second)


def _nested(siblings: Iterable[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    for node in siblings:
        yield node
        for body in bodies(node):
            yield from _nested(body.node)


def bodies(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """The graphs among the node's attributes."""
    for item in node.attribute:
        if item.HasField("g"):
            yield item.g
        yield from item.graphs


def has_grids_and_branches(model: bytes) -> bool:
    """Whether the model has Q/DQ, and nodes with bodies, which may read outer tensors."""
    return any(True for node in _nodes_of(model, _BRANCHES) for _ in bodies(node))


def has_wide_bias(model: bytes) -> bool:
    """Whether a bias beside int16 weights may need more than 32 bits."""
    return WIDE_BIAS.encode() in bytes_without_weights(model)


def has_uneven_average(model: bytes) -> bool:
    """Whether the model has Q/DQ, and an AveragePool with dilations or with counted pads that its
    windows overhang."""
    return any(_is_uneven(node) for node in _nodes_of(model, (b"AveragePool",)))


def _is_uneven(node: onnx.NodeProto) -> bool:
    attributes = {item.name: onnx.helper.get_attribute_value(item) for item in node.attribute}
    overhangs = bool(attributes.get("ceil_mode", 0) and attributes.get("count_include_pad", 0))
    return node.op_type == "AveragePool" and (
        overhangs or max(attributes.get("dilations", [1])) > 1
    )


def _nodes_of(model: bytes, written: Iterable[bytes]) -> Sequence[onnx.NodeProto]:
    """The nodes of a Q/DQ model that contains one of these byte strings; none for other
    bytes."""
    words = bytes_without_weights(model)
    if _GRIDS not in words or not any(word in words for word in written):
        return ()  # the usual case, without parsing
    try:
        return onnx.load_from_string(model).graph.node
    except (google.protobuf.message.DecodeError, ValueError):
        return ()


def _room(sparse: onnx.SparseTensorProto, room: int) -> int:
    """What remains of `room` bytes. Raises GraphError."""
    kind = onnx.helper.tensor_dtype_to_np_dtype(sparse.values.data_type)
    needed = prod(sparse.dims) * kind.itemsize
    if min(sparse.dims, default=1) < 0 or needed > room:
        message = f"the sparse weight `{sparse.values.name}` of shape {list(sparse.dims)}"
        raise GraphError(
            f"{message} is more than {MAX_DENSE_BYTES >> 20} MiB when it is written out"
        )
    return room - needed


def _dense(sparse: onnx.SparseTensorProto) -> onnx.TensorProto:
    """Indices are flat, (n,), or per axis, (n, rank)."""
    values = onnx.numpy_helper.to_array(sparse.values)
    indices = onnx.numpy_helper.to_array(sparse.indices)
    dims, name = tuple(sparse.dims), sparse.values.name
    per_axis = indices.ndim == 2
    places = tuple(indices.T) if per_axis else (indices,)
    limits = dims if per_axis else (prod(dims),)
    fits = len(places) == len(limits) and all(
        axis.shape == values.shape and (axis >= 0).all() and (axis < limit).all()
        for axis, limit in zip(places, limits, strict=False)
    )
    if not fits or values.ndim != 1:
        raise GraphError(f"the indices of the sparse weight `{name}` do not fit its values")
    dense = np.zeros(dims if per_axis else prod(dims), values.dtype)
    dense[places] = values
    return onnx.numpy_helper.from_array(dense.reshape(dims), name)
