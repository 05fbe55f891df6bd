"""Replaces the weights of a serialized ONNX model by random ones of the same distribution.

Replaced are the constants of a float type, and the codes that a DequantizeLinear or an integer
operator reads. Kept are those that the model's structure depends on: integers such as shapes, axes
and indices, scales, zero points, sizes and bounds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import google.protobuf.message
import numpy as np
import onnx
from onnx import numpy_helper

from npumake.errors import GraphError
from npumake.graph.outside import Beside, span_of
from npumake.graph.proto import graphs, nodes
from npumake.graph.qdq import DEQUANTIZE, QDQ_OPERATORS
from npumake.kernels.random_like import random_like

FLOATS = frozenset({onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16, onnx.TensorProto.DOUBLE})
CODES = frozenset(
    {onnx.TensorProto.INT8, onnx.TensorProto.UINT8, onnx.TensorProto.INT16,
     onnx.TensorProto.UINT16, onnx.TensorProto.INT32}
)  # fmt: skip
# Operators whose constants are not weights, and those that only move them there.
STRUCTURAL = (
    *("Clip", "DynamicQuantizeLinear", "NonMaxSuppression", "Pad", "Pow"),
    *(*QDQ_OPERATORS, "Range", "Resize", "Upsample"),
)
MOVES = ("Cast", "Concat", "Identity", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze")
# Inputs that are codes, by operator.
CODE_INPUTS: Mapping[str, tuple[int, ...]] = {
    "ConvInteger": (1,),
    DEQUANTIZE: (0,),
    "MatMulInteger": (0, 1),
    "QLinearConv": (3, 8),
    "QLinearMatMul": (0, 3),
}
MAX_LOOSE_FLOATS = 16  # of an attribute that is a list of numbers


PLAIN = frozenset(
    {onnx.TensorProto.INT64, onnx.TensorProto.BOOL, onnx.TensorProto.STRING,
     onnx.TensorProto.UINT32, onnx.TensorProto.UINT64}
)  # fmt: skip


class RandomizedModel(NamedTuple):
    """The model, its weight files by name, and the number of tensors that were replaced."""

    model: bytes
    files: Mapping[str, bytes]
    replaced: int


def with_random_weights(
    data: bytes, beside: Sequence[Beside], rng: np.random.Generator
) -> RandomizedModel:
    """The model with its external weights `beside` it. Raises GraphError for bytes that are no
    model, and for weights that cannot be replaced."""
    try:
        proto = onnx.load_from_string(data)
    except (google.protobuf.message.DecodeError, ValueError) as error:
        raise GraphError(f"not an ONNX model: {error}") from error
    structural, codes = _structural(proto), _codes(proto)
    files = {file.name: bytearray(file.part(0, file.size)) for file in beside}
    replaced = 0
    for name, tensor in _constants(proto):
        if tensor.data_type not in FLOATS | CODES | PLAIN:
            kind = onnx.TensorProto.DataType.Name(tensor.data_type).lower()
            raise GraphError(f"the weight `{name}` of type {kind} cannot be replaced")
        is_weight = tensor.data_type in FLOATS and name not in structural
        if is_weight or (tensor.data_type in CODES and name in codes):
            _replace(tensor, beside, files, rng)
            replaced += 1
    _replace_lists(proto, structural, rng)
    contents = {name: bytes(content) for name, content in files.items()}
    return RandomizedModel(proto.SerializeToString(deterministic=True), contents, replaced)


def _constants(proto: onnx.ModelProto) -> Iterator[tuple[str, onnx.TensorProto]]:
    """Every constant tensor with the name that nodes read it by; sparse ones by their values."""
    for graph in graphs(proto):
        for tensor in graph.initializer:
            yield tensor.name, tensor
        for sparse in graph.sparse_initializer:
            yield sparse.values.name, sparse.values
    for node in nodes(proto):
        for item in node.attribute:
            name = node.output[0] if node.op_type == "Constant" else f"{node.name}.{item.name}"
            dense = [*([item.t] if item.HasField("t") else ()), *item.tensors]
            sparse = [item.sparse_tensor] if item.HasField("sparse_tensor") else []
            for tensor in (*dense, *(entry.values for entry in sparse)):
                yield name, tensor


def _structural(proto: onnx.ModelProto) -> set[str]:
    """The names of values that are scales, bounds and sizes, directly or moved there."""
    every = list(nodes(proto))
    names = {
        name
        for node in every
        if node.op_type in STRUCTURAL or node.op_type.startswith("QLinear")
        for name in node.input[1:]
    }
    changed = True
    while changed:
        moved = {
            name
            for node in every
            if node.op_type in MOVES and names & {*node.output}
            for name in node.input
        }
        changed = not moved <= names
        names |= moved
    return names


def _codes(proto: onnx.ModelProto) -> set[str]:
    return {
        node.input[index]
        for node in nodes(proto)
        for index in CODE_INPUTS.get(node.op_type, ())
        if index < len(node.input)
    }


def _replace(
    tensor: onnx.TensorProto,
    beside: Sequence[Beside],
    files: Mapping[str, bytearray],
    rng: np.random.Generator,
) -> None:
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        file, offset, length = span_of(tensor, beside)
        kind = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type).newbyteorder("<")
        values = np.frombuffer(files[file.name], kind, length // kind.itemsize, offset)
        files[file.name][offset : offset + length] = random_like(values, rng).tobytes()
        return
    random = numpy_helper.from_array(random_like(numpy_helper.to_array(tensor), rng))
    for field in ("float_data", "double_data", "int32_data", "raw_data"):
        tensor.ClearField(field)
    tensor.raw_data = random.raw_data


def _replace_lists(proto: onnx.ModelProto, structural: set[str], rng: np.random.Generator) -> None:
    """The numbers of Constant nodes. Raises GraphError for long lists of other operators."""
    for node in nodes(proto):
        for item in node.attribute:
            if not item.floats or {*node.output} & structural:
                continue
            if node.op_type == "Constant":
                item.floats[:] = random_like(np.array(item.floats, np.float32), rng).tolist()
            elif len(item.floats) > MAX_LOOSE_FLOATS:
                message = f"the numbers of `{item.name}` in a {node.op_type} cannot be replaced"
                raise GraphError(message, node.name)
