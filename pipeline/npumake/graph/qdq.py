"""Q/DQ: how QuantizeLinear and DequantizeLinear nodes are wired.

    tensor -> Q -> codes -> DQ -> real         real = scale * (codes - zero point)

Both nodes read a scale and a zero point, with one element or one per channel of `axis`. Behind a
constant, the Q may be left out: then the DQ reads constant codes. A chain of pairs rounds a tensor
more than once. Every other room uses this module; none names the two operators.

A grid is known if scale and zero point are constant. A missing zero point is 0 of the codes' type.
Source: ONNX's operators of these names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol, TypeGuard, TypeVar

import numpy as np

from npumake.graph.graph import Graph, Node, Value
from npumake.graph.match import array, attribute, only_consumer, producer, shape
from npumake.graph.part import declare
from npumake.kernels import affine

QUANTIZE, DEQUANTIZE = "QuantizeLinear", "DequantizeLinear"
QDQ_OPERATORS = (QUANTIZE, DEQUANTIZE)


class HasOperator(Protocol):
    """A node of a graph, of a model file, or of a graph serialized node by node."""

    @property
    def op_type(self) -> str: ...


N = TypeVar("N", bound=HasOperator)


class Grid(NamedTuple):
    """Scale and zero point of a tensor, or of each of its channels."""

    scale: np.ndarray  # float32, () or (channels,)
    zero_point: np.ndarray  # of the codes' type, the same shape

    @property
    def is_per_tensor(self) -> bool:
        return self.scale.size == 1


class QDQPair(NamedTuple):
    """The output of a Q, and of the DQ behind it."""

    codes: Value
    real: Value


class StoredConstant(NamedTuple):
    """A constant behind a DQ: real = scale * (codes - zero point), per channel along `axis`."""

    codes: np.ndarray
    scale: np.ndarray
    zero_point: np.ndarray
    axis: int

    @property
    def real(self) -> np.ndarray:
        scale, zero_point = (self._per_axis(part) for part in (self.scale, self.zero_point))
        return affine.dequantize(self.codes, scale, zero_point)

    @property
    def steps(self) -> np.ndarray:
        """codes - zero point, int32."""
        return np.subtract(self.codes, self._per_axis(self.zero_point), dtype=np.int32)

    @property
    def is_symmetric_int8(self) -> bool:
        return self.codes.dtype == np.int8 and not self.zero_point.any()

    def _per_axis(self, values: np.ndarray) -> np.ndarray:
        return affine.per_axis(values, self.codes.ndim, self.axis)


# -- which node ----------------------------------------------------------------------------


def is_quantize(node: N | None) -> TypeGuard[N]:
    """Whether the node is a QuantizeLinear, of any domain."""
    return node is not None and node.op_type == QUANTIZE


def is_dequantize(node: N | None) -> TypeGuard[N]:
    return node is not None and node.op_type == DEQUANTIZE


def is_qdq(node: N | None) -> TypeGuard[N]:
    return node is not None and node.op_type in QDQ_OPERATORS


# -- the wiring ----------------------------------------------------------------------------


def quantizer_of(value: Value | None) -> Node | None:
    """The Q that outputs these codes."""
    maker = None if value is None else producer(value)
    return maker if is_quantize(maker) else None


def dequantizer_of(value: Value | None) -> Node | None:
    """The DQ that outputs this real tensor."""
    maker = None if value is None else producer(value)
    return maker if is_dequantize(maker) else None


def pair_of(value: Value | None) -> tuple[Node, Node] | None:
    """The Q and DQ whose output is this real tensor; None without the Q."""
    dequantizer = dequantizer_of(value)
    quantizer = None if dequantizer is None else quantizer_of(dequantizer.inputs[0])
    return None if dequantizer is None or quantizer is None else (quantizer, dequantizer)


def sole_quantizer(value: Value) -> Node | None:
    """The Q that is the tensor's only reader; None for a model output."""
    reader = only_consumer(value)
    return reader if is_quantize(reader) else None


def first_quantizer(value: Value) -> Node | None:
    """The first Q that reads the tensor."""
    return next((use.node for use in value.uses() if is_quantize(use.node)), None)


def first_dequantizer(codes: Value) -> Node | None:
    return next(iter(dequantizers_of(codes)), None)


def dequantizers_of(codes: Value) -> list[Node]:
    """Every DQ that reads the codes, not as a parameter."""
    return [use.node for use in codes.uses() if not use.idx and is_dequantize(use.node)]


def tensor_before_pairs(value: Value) -> Value:
    """The tensor that a chain of pairs starts from; codes without a Q end the chain."""
    while (pair := pair_of(value)) is not None and pair[0].inputs[0] is not None:
        value = pair[0].inputs[0]
    return value


def before_qdq(value: Value) -> Value:
    """The value that a chain of Q and DQ nodes starts from, also codes without a Q."""
    while is_qdq(maker := producer(value)) and maker.inputs[0] is not None:
        value = maker.inputs[0]
    return value


def readers_past_pairs(value: Value) -> Iterator[tuple[Node, int]]:
    """The readers of the value as (node, input index), depth first, looking through Q/DQ."""
    waiting = [*value.uses()]
    while waiting:
        use = waiting.pop(0)
        if is_qdq(use.node):
            waiting[:0] = use.node.outputs[0].uses()
        else:
            yield use.node, use.idx


# -- scale and zero point ------------------------------------------------------------------


def grid_of(node: Node) -> Grid | None:
    """The grid of a Q or DQ; None if it is computed, and for any other node."""
    if not is_qdq(node):
        return None
    scale = array(node.inputs[1])
    stored = node.inputs[2] if len(node.inputs) > 2 else None
    if scale is None:
        return None
    zero_point = np.zeros(scale.shape, codes_dtype(node)) if stored is None else array(stored)
    return None if zero_point is None else Grid(scale, zero_point)


def scalar_grid_of(node: Node | None) -> Grid | None:
    """The per-tensor grid of a Q or DQ, of shape (); None for any other."""
    grid = None if node is None else grid_of(node)
    if grid is None or not grid.is_per_tensor:
        return None
    return Grid(grid.scale.reshape(()), grid.zero_point.reshape(()))


def grid_behind(value: Value | None) -> Grid | None:
    """The grid from which the value is dequantized."""
    dequantizer = dequantizer_of(value)
    return None if dequantizer is None else grid_of(dequantizer)


def axis_of(node: Node) -> int:
    """The axis of the channels of a Q or DQ, if its grid has several."""
    return int(attribute(node, "axis", 1))


def codes_dtype(node: Node) -> np.dtype:
    """The type of the codes of a Q or DQ; uint8, ONNX's default, if none is stored."""
    stored = node.inputs[2] if len(node.inputs) > 2 else None
    codes = node.outputs[0] if is_quantize(node) else node.inputs[0]
    dtypes = (value.dtype for value in (stored, codes) if value is not None)
    return next((dtype.numpy() for dtype in dtypes if dtype is not None), np.dtype(np.uint8))


def stored_constant(value: Value | None) -> StoredConstant | None:
    """The constant behind a DQ of a known grid, also float behind Q and DQ; else None."""
    dequantizer = dequantizer_of(value)
    grid = None if dequantizer is None else _plain_grid(dequantizer)
    if dequantizer is None or grid is None:
        return None
    codes, quantizer = array(dequantizer.inputs[0]), quantizer_of(dequantizer.inputs[0])
    if codes is None and quantizer is not None:
        real = array(quantizer.inputs[0])
        codes = rounded_codes(quantizer) if real is not None and np.isfinite(real).all() else None
    return None if codes is None else StoredConstant(codes, *grid, axis_of(dequantizer))


def rounded_codes(quantizer: Node | None) -> np.ndarray | None:
    """The codes of a float constant behind a Q, else None. Raises NotANumberError on NaN."""
    grid = None if quantizer is None else _plain_grid(quantizer)
    real = None if quantizer is None else array(quantizer.inputs[0])
    if quantizer is None or grid is None or real is None:
        return None
    limits = np.iinfo(grid.zero_point.dtype)  # where infinities saturate
    scale, zero_point = (affine.per_axis(part, real.ndim, axis_of(quantizer)) for part in grid)
    codes = affine.quantize(real, scale, zero_point, limits.min, limits.max)
    return codes.astype(grid.zero_point.dtype)


def _plain_grid(node: Node) -> Grid | None:
    """The grid of ONNX's own operator without scales of blocks."""
    return None if node.domain or attribute(node, "block_size", 0) else grid_of(node)


# -- edits ---------------------------------------------------------------------------------


def insert_pair(
    graph: Graph,
    value: Value,
    grid: Grid,
    name: str,
    *,
    axis: int | None = None,
    before: Node | None = None,
) -> QDQPair:
    """Inserts Q and DQ behind `value`, named after `name`. The pair of a constant, which has no
    producer, goes `before` the reading node.
    """
    parameters, before = store_grid(graph, name, grid), None if producer(value) else before
    codes = insert_quantize(graph, value, parameters, f"{name}_quantized", before=before, axis=axis)
    real = insert_dequantize(graph, codes, parameters, f"{name}_dequantized", axis=axis)
    if value.shape is not None:
        scale, zero_point = parameters
        declare(codes, shape(value), zero_point)
        declare(real, shape(value), scale)
    return QDQPair(codes, real)


def insert_quantize(
    graph: Graph,
    value: Value,
    parameters: Iterable[Value],
    name: str,
    *,
    before: Node | None = None,
    axis: int | None = None,
) -> Value:
    """The codes of `value`, behind its producer or `before` a node."""
    after = None if before is not None else producer(value)
    return graph.insert(QUANTIZE, [value, *parameters], name, after, before=before, axis=axis)


def insert_dequantize(
    graph: Graph,
    codes: Value,
    parameters: Iterable[Value],
    name: str,
    *,
    before: Node | None = None,
    axis: int | None = None,
) -> Value:
    """The real tensor of `codes`, behind their producer or `before` a node."""
    after = None if before is not None else producer(codes)
    return graph.insert(DEQUANTIZE, [codes, *parameters], name, after, before=before, axis=axis)


def store_grid(graph: Graph, name: str, grid: Grid) -> tuple[Value, Value]:
    """Scale and zero point as constants of the graph."""
    scale = graph.constant(f"{name}_scale", grid.scale)
    return scale, graph.constant(f"{name}_zero_point", grid.zero_point)


def set_grid(graph: Graph, nodes: Iterable[Node], scale: Value, zero_point: Value) -> None:
    """Moves Q and DQ nodes to another grid."""
    for node in nodes:
        graph.set_inputs(node, {1: scale, 2: zero_point})
