"""What nodes compute of each row of a tensor: its last axis, whatever the others are.

The nodes behind a tensor are followed as long as they compute row by row, and run in float64 on
ROWS rows of different sizes. A value is an array (ROWS, size of a row), or (ROWS, 1) where rows are
reduced.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from heapq import heapify, heappop, heappush
from itertools import count
from typing import NamedTuple

import numpy as np

from npumake.graph import Node, Value, array, attribute, is_given
from npumake.passes.recognize_functions import ELEMENTWISE

MAX_NODES = 24  # behind one tensor; the longest known spelling of a LayerNormalization has 15
MAX_SIZE = 1 << 16  # of a row
ROWS = 8

REDUCTIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "ReduceMean": lambda rows: rows.mean(1, keepdims=True),
    "ReduceSum": lambda rows: rows.sum(1, keepdims=True),
    "ReduceSumSquare": lambda rows: (rows * rows).sum(1, keepdims=True),
}
Dims = tuple[int | None, ...]  # of a shape, with None for an open dimension

BY_ELEMENT: dict[str, Callable[..., np.ndarray]] = {
    **ELEMENTWISE,
    "Reciprocal": lambda _, rows: 1.0 / rows,
}
MOVES = frozenset({"Expand", "Identity", "Reshape", "Squeeze", "Unsqueeze"})


class RowRegion(NamedTuple):
    """Nodes that read only `x` and constants, in order, and what they compute of the rows."""

    x: Value
    nodes: tuple[Node, ...]
    values: Mapping[Value, np.ndarray]


def region_of(reduction: Node, order: Mapping[Node, int]) -> RowRegion | None:
    """The nodes that compute row by row, behind the tensor whose rows the node reduces. `order`
    numbers the nodes of the graph. None unless the size of a row is known, and fits."""
    x = reduction.inputs[0]
    size = dims_of(x)[-1] if x is not None and reduces_rows(reduction) else None
    if x is None or size is None or not 1 < size <= MAX_SIZE:
        return None
    line = _Line(dims_of(x), size)
    values, tie = {x: _rows(size)}, count()
    nodes: list[Node] = []
    queue = [(order[use.node], next(tie), use.node) for use in x.uses() if use.node in order]
    heapify(queue)
    while queue and len(nodes) < MAX_NODES:
        _, _, node = heappop(queue)
        if node.outputs[0] in values or (result := line.computed(node, values)) is None:
            continue
        values[node.outputs[0]] = result
        nodes.append(node)
        for use in node.outputs[0].uses():
            if use.node in order:
                heappush(queue, (order[use.node], next(tie), use.node))
    return RowRegion(x, tuple(nodes), values)


def reduces_rows(reduction: Node) -> bool:
    """Whether it reduces the last axis alone."""
    read = reduction.inputs[0]
    listed = reduction.inputs[1] if len(reduction.inputs) > 1 else None
    axes = array(listed) if listed is not None else attribute(reduction, "axes")
    if read is None or not read.shape or axes is None or np.size(axes) != 1:
        return False
    return int(np.reshape(axes, -1)[0]) in (-1, len(read.shape) - 1)


def dims_of(value: Value) -> Dims:
    """The shape, None for an open dimension; that of no tensor if not even the rank is known."""
    if value.shape is None:
        return (-1,)
    return tuple(dim if isinstance(dim, int) else None for dim in value.shape)


def _alike(dims: Dims, other: Dims) -> bool:
    """Whether the shapes may be the same: an open dimension may have any size."""
    pairs = zip(dims, other, strict=False)
    return len(dims) == len(other) and all(a == b for a, b in pairs if a is not None is not b)


@lru_cache(maxsize=8)
def _rows(size: int) -> np.ndarray:
    """Normal numbers; variances from 1e-8, where an epsilon counts, to 100."""
    scales = np.array([10.0, 3.0, 1.0, 1.0, 0.1, 0.01, 1e-3, 1e-4])
    return np.random.default_rng(0).normal(size=(ROWS, size)) * scales[:, None]


class _Line(NamedTuple):
    """What nodes compute of the rows of a tensor of these dimensions."""

    whole: Dims
    size: int

    def computed(self, node: Node, values: Mapping[Value, np.ndarray]) -> np.ndarray | None:
        """The result of the node for the rows; None unless it computes row by row."""
        operands = [value for value in node.inputs if value is not None]
        if node.domain or len(node.outputs) != 1 or not operands:
            return None
        first, width = values.get(operands[0]), self._width(node.outputs[0])
        if node.op_type in MOVES:
            result = first
        elif node.op_type in REDUCTIONS:
            is_row = first is not None and first.shape[1] > 1 and reduces_rows(node)
            result = REDUCTIONS[node.op_type](first) if is_row and first is not None else None
        else:
            result = self._elementwise(node, operands, values)
        return result if result is not None and result.shape[1] == width else None

    def _elementwise(
        self, node: Node, operands: list[Value], values: Mapping[Value, np.ndarray]
    ) -> np.ndarray | None:
        if node.op_type not in BY_ELEMENT:
            return None
        arrays = [
            values.get(value) if self._is_aligned(value, node.outputs[0]) else self._constant(value)
            for value in operands
        ]
        if any(rows is None for rows in arrays):
            return None
        with np.errstate(all="ignore"):
            result: np.ndarray = BY_ELEMENT[node.op_type](node, *arrays)
        return result if np.isfinite(result).all() else None

    def _constant(self, value: Value) -> np.ndarray | None:
        """A number, or one number for each place in a row."""
        constant = array(value)
        if constant is None or constant.dtype.kind != "f":
            return None
        fits = constant.size == 1 or constant.shape[-1] == constant.size == self.size
        return constant.astype(np.float64).reshape(1, -1) if fits else None

    @property
    def _keepdims(self) -> Dims:
        return (*self.whole[:-1], 1)

    def _width(self, value: Value) -> int:
        """The size of a row if the value has all dimensions, 1 if it has them without the last, 0
        for another shape."""
        dims = dims_of(value)
        if _alike(dims, self.whole):
            return self.size
        return int(_alike(dims, self._keepdims) or _alike(dims, self.whole[:-1]))

    def _is_aligned(self, value: Value, result: Value) -> bool:
        """Whether an operand broadcasts to the result row by row: a reduced one keeps the axis."""
        if is_given(value):
            return False
        return any(_alike(dims_of(value), dims) for dims in (dims_of(result), self._keepdims))
