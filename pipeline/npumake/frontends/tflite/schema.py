"""The content of a .tflite file as plain values: tensors, and operators in execution order.

Numbers of fields and enumerations are those of TensorFlow's schema.fbs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from npumake.frontends.tflite.flatbuffer import NO_TABLE, FlatTable, MalformedError, view
from npumake.frontends.tflite.sparse import filled

IDENTIFIER = b"TFL3"
MAX_ELEMENTS = 2**31  # of one tensor; more exceeds any NPU, and a 32-bit index

# By the schema's type number.
TYPES = {
    0: "float32",
    1: "float16",
    2: "int32",
    3: "uint8",
    4: "int64",
    6: "bool",
    7: "int16",
    9: "int8",
    10: "float64",
    12: "uint64",
    15: "uint32",
    16: "uint16",
}
# Types that are not supported.
OTHERS = {5: "text", 8: "complex numbers", 11: "complex numbers", 13: "a resource", 14: "a variant"}

# Operators in the order of the schema's numbers, from 0.
_NAMED = """
    ADD AVERAGE_POOL_2D CONCATENATION CONV_2D DEPTHWISE_CONV_2D DEPTH_TO_SPACE DEQUANTIZE
    EMBEDDING_LOOKUP FLOOR FULLY_CONNECTED HASHTABLE_LOOKUP L2_NORMALIZATION L2_POOL_2D
    LOCAL_RESPONSE_NORMALIZATION LOGISTIC LSH_PROJECTION LSTM MAX_POOL_2D MUL RELU RELU_N1_TO_1
    RELU6 RESHAPE RESIZE_BILINEAR RNN SOFTMAX SPACE_TO_DEPTH SVDF TANH CONCAT_EMBEDDINGS SKIP_GRAM
    CALL CUSTOM EMBEDDING_LOOKUP_SPARSE PAD UNIDIRECTIONAL_SEQUENCE_RNN GATHER BATCH_TO_SPACE_ND
    SPACE_TO_BATCH_ND TRANSPOSE MEAN SUB DIV SQUEEZE UNIDIRECTIONAL_SEQUENCE_LSTM STRIDED_SLICE
    BIDIRECTIONAL_SEQUENCE_RNN EXP TOPK_V2 SPLIT LOG_SOFTMAX DELEGATE BIDIRECTIONAL_SEQUENCE_LSTM
    CAST PRELU MAXIMUM ARG_MAX MINIMUM LESS NEG PADV2 GREATER GREATER_EQUAL LESS_EQUAL SELECT SLICE
    SIN TRANSPOSE_CONV SPARSE_TO_DENSE TILE EXPAND_DIMS EQUAL NOT_EQUAL LOG SUM SQRT RSQRT SHAPE POW
    ARG_MIN FAKE_QUANT REDUCE_PROD REDUCE_MAX PACK LOGICAL_OR ONE_HOT LOGICAL_AND LOGICAL_NOT UNPACK
    REDUCE_MIN FLOOR_DIV REDUCE_ANY SQUARE ZEROS_LIKE FILL FLOOR_MOD RANGE RESIZE_NEAREST_NEIGHBOR
    LEAKY_RELU SQUARED_DIFFERENCE MIRROR_PAD ABS SPLIT_V UNIQUE CEIL REVERSE_V2 ADD_N GATHER_ND COS
    WHERE RANK ELU REVERSE_SEQUENCE MATRIX_DIAG QUANTIZE MATRIX_SET_DIAG ROUND HARD_SWISH IF WHILE
    NON_MAX_SUPPRESSION_V4 NON_MAX_SUPPRESSION_V5 SCATTER_ND SELECT_V2 DENSIFY SEGMENT_SUM
    BATCH_MATMUL PLACEHOLDER_FOR_GREATER_OP_CODES CUMSUM CALL_ONCE BROADCAST_TO RFFT2D CONV_3D
    IMAG REAL COMPLEX_ABS HASHTABLE HASHTABLE_FIND HASHTABLE_IMPORT HASHTABLE_SIZE REDUCE_ALL
    CONV_3D_TRANSPOSE VAR_HANDLE READ_VARIABLE ASSIGN_VARIABLE BROADCAST_ARGS
    RANDOM_STANDARD_NORMAL BUCKETIZE RANDOM_UNIFORM MULTINOMIAL GELU DYNAMIC_UPDATE_SLICE
    RELU_0_TO_1 UNSORTED_SEGMENT_PROD UNSORTED_SEGMENT_MAX UNSORTED_SEGMENT_SUM ATAN2
    UNSORTED_SEGMENT_MIN SIGN BITCAST BITWISE_XOR RIGHT_SHIFT
    """
NAMES = tuple(_NAMED.split())


@dataclass(frozen=True)
class TFLiteGrid:
    """real = scale * (code - zero_point); both () or, per channel, (shape[axis],)."""

    scale: np.ndarray  # float32
    zero_point: np.ndarray  # of the tensor's type
    axis: int


@dataclass(frozen=True, eq=False)
class TFLiteTensor:
    """Compared by identity. Constants have `values`, quantized tensors a `grid`; the runtime
    decides the size of the axes in `left_open`."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    values: np.ndarray | None
    grid: TFLiteGrid | None
    left_open: tuple[int, ...] = ()


@dataclass(frozen=True)
class TFLiteOperator:
    type: str
    inputs: tuple[TFLiteTensor | None, ...]
    outputs: tuple[TFLiteTensor, ...]
    options: FlatTable
    custom: bytes = b""  # options of a custom operator

    def input(self, index: int) -> TFLiteTensor:
        """Raises MalformedError for an omitted input."""
        tensor = self.optional(index)
        if tensor is None:
            raise MalformedError(f"{self.type} lacks its input {index}")
        return tensor

    def optional(self, index: int) -> TFLiteTensor | None:
        return self.inputs[index] if index < len(self.inputs) else None

    @property
    def output(self) -> TFLiteTensor:
        if not self.outputs:
            raise MalformedError(f"{self.type} has no output")
        return self.outputs[0]


@dataclass(frozen=True)
class TFLiteModel:
    inputs: tuple[TFLiteTensor, ...]
    outputs: tuple[TFLiteTensor, ...]
    operators: tuple[TFLiteOperator, ...]


def read_network(data: bytes) -> TFLiteModel:
    """The first subgraph of the file. Raises MalformedError."""
    if data[4:8] != IDENTIFIER:
        raise MalformedError(f"it lacks the identifier {IDENTIFIER.decode()}")
    model = FlatTable.root(data)
    types = [_operator_type(code) for code in model.tables(1)]
    subgraphs = model.tables(2)
    if not subgraphs:
        raise MalformedError("it holds no graph")
    graph, buffers = subgraphs[0], model.tables(4)
    tensors = _named_apart(_tensor(table, buffers) for table in graph.tables(0))
    operators = [_operator(table, types, tensors) for table in graph.tables(3)]
    inputs, outputs = (_chosen(tensors, graph.numbers(field, "<i4")) for field in (1, 2))
    if not operators or not outputs:
        raise MalformedError("it computes nothing")
    return TFLiteModel(inputs, outputs, tuple(operators))


def _operator_type(code: FlatTable) -> str:
    """The operator's name; for a custom operator the name in the file."""
    number = max(code.scalar(0, "b", 0), code.scalar(3, "i", 0))
    name = NAMES[number] if 0 <= number < len(NAMES) else f"number {number}"
    return f"CUSTOM {code.text(1)}" if name == "CUSTOM" else name


def _operator(
    table: FlatTable, types: Sequence[str], tensors: Sequence[TFLiteTensor]
) -> TFLiteOperator:
    index = table.scalar(0, "I", 0)
    if index >= len(types):
        raise MalformedError(f"operator code {index} of {len(types)} is missing")
    input_indices = table.numbers(1, "<i4")
    inputs = tuple(None if n == -1 else _chosen(tensors, [n])[0] for n in input_indices.tolist())
    outputs = _chosen(tensors, table.numbers(2, "<i4"))
    custom = bytes(table.numbers(5, "u1"))
    return TFLiteOperator(types[index], inputs, outputs, table.table(4), custom)


def _chosen(
    tensors: Sequence[TFLiteTensor], indices: Sequence[int] | np.ndarray
) -> tuple[TFLiteTensor, ...]:
    for index in indices:
        if not 0 <= index < len(tensors):
            raise MalformedError(f"tensor {index} of {len(tensors)} is missing")
    return tuple(tensors[index] for index in indices)


def _tensor(table: FlatTable, buffers: Sequence[FlatTable]) -> TFLiteTensor:
    name, shape = table.text(3), tuple(table.numbers(0, "<i4").tolist())
    number = table.scalar(1, "b", 0)
    if number not in TYPES:
        message = OTHERS.get(number, f"type {number}, which the format does not have")
        raise MalformedError(f"tensor `{name}` is of {message}: only real numbers can be read")
    if min(shape, default=1) < 0 or math.prod(shape) > MAX_ELEMENTS:
        raise MalformedError(f"tensor `{name}` has the shape {list(shape)}")
    index, dtype = table.scalar(2, "I", 0), TYPES[number]
    if index >= max(len(buffers), 1):
        raise MalformedError(f"buffer {index} of {len(buffers)} is missing")
    values = _values(buffers[index], name, shape, dtype, table.table(6)) if index else None
    grid, signature = _grid(table.table(4), name, shape, dtype), table.numbers(7, "<i4")
    left_open = tuple(np.flatnonzero(signature < 0).tolist())
    return TFLiteTensor(name, shape, dtype, values, grid, left_open)


def _named_apart(tensors: Iterable[TFLiteTensor]) -> list[TFLiteTensor]:
    """The tensors with unique names: unnamed or repeated ones get their index."""
    names, named = {""}, []
    for index, tensor in enumerate(tensors):
        free = tensor.name not in names
        named.append(tensor if free else replace(tensor, name=f"{tensor.name}#{index}"))
        names.add(tensor.name)
    return named


def _values(
    buffer: FlatTable, name: str, shape: tuple[int, ...], dtype: str, sparsity: FlatTable
) -> np.ndarray | None:
    """The buffer's content; None for an empty one, whose tensor is computed."""
    content = buffer.numbers(0, "u1")
    if not content.size and (offset := buffer.scalar(1, "Q", 0)) > 1:
        content = view(
            buffer.data, offset, buffer.scalar(2, "Q", 0), "u1"
        )  # stored behind the tables
    if not content.size:
        return None
    kind = np.dtype(dtype).newbyteorder("<")
    if sparsity is not NO_TABLE and not content.size % kind.itemsize:
        return filled(sparsity, content.view(kind), shape)
    if content.size != math.prod(shape) * kind.itemsize:
        raise MalformedError(f"tensor `{name}` of {dtype}{list(shape)} has {content.size} bytes")
    return content.view(kind).reshape(shape)


def _grid(table: FlatTable, name: str, shape: tuple[int, ...], dtype: str) -> TFLiteGrid | None:
    scale, zero_point = table.numbers(2, "<f4"), table.numbers(3, "<i8")
    if not scale.size or np.dtype(dtype).kind not in "iu":
        return None
    axis = table.scalar(6, "i", 0)
    count = 1
    if scale.size > 1:
        count = shape[axis] if 0 <= axis < len(shape) else -1
    limits = np.iinfo(dtype)
    if (
        scale.size != count
        or zero_point.size not in (0, 1, count)
        or not (np.isfinite(scale) & (scale > 0)).all()
        or not ((zero_point >= limits.min) & (zero_point <= limits.max)).all()
    ):
        raise MalformedError(f"tensor `{name}` has invalid quantization parameters")
    dims = (count,) if count > 1 else ()
    zeros = zero_point if zero_point.size else np.zeros(1, np.int64)
    spread = np.broadcast_to(zeros, (count,)).reshape(dims)
    return TFLiteGrid(scale.reshape(dims).astype(np.float32), spread.astype(dtype), axis)
