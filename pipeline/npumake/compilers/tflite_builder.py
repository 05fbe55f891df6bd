"""The network under construction. The file holds a tensor x of the program as x.transpose(order).

Images are NHWC, as TensorFlow Lite computes them: order (0, 2, 3, 1). A Transpose of the program
only changes the order. If an operator needs another order, one TRANSPOSE is added, or a RESHAPE if
only axes of size 1 move.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from npumake.bundle.program import Instruction, Program
from npumake.bundle.program import Tensor as Grid
from npumake.compilers.flatfile import Fields, FileOperator, FileTensor
from npumake.graph import Node

Order = tuple[int, ...]
NHWC: Order = (0, 2, 3, 1)
# By operator: the version that supports int8, and the index of its options in the schema's union.
KINDS: Mapping[str, tuple[int, int]] = {
    "ABS": (1, 0),
    "ADD": (2, 11),
    "ARG_MAX": (2, 40),
    "AVERAGE_POOL_2D": (2, 5),
    "BATCH_MATMUL": (2, 101),
    "CAST": (1, 37),
    "CONCATENATION": (2, 10),
    "CONV_2D": (3, 1),
    "COS": (1, 0),
    "DEPTHWISE_CONV_2D": (3, 2),
    "DEQUANTIZE": (2, 0),
    "DIV": (1, 29),
    "EQUAL": (1, 53),
    "EXP": (1, 33),
    "FLOOR": (1, 0),
    "FULLY_CONNECTED": (12, 8),
    "GATHER": (2, 23),
    "GATHER_ND": (1, 83),
    "GELU": (1, 116),
    "GREATER": (1, 44),
    "GREATER_EQUAL": (1, 45),
    "HARD_SWISH": (1, 0),
    "LEAKY_RELU": (2, 75),
    "LESS": (1, 41),
    "LESS_EQUAL": (1, 46),
    "LOG": (1, 0),
    "LOGICAL_AND": (1, 62),
    "LOGICAL_NOT": (1, 63),
    "LOGICAL_OR": (1, 60),
    "LOGISTIC": (2, 0),
    "MAXIMUM": (2, 39),
    "MAX_POOL_2D": (2, 5),
    "MEAN": (2, 27),
    "MINIMUM": (2, 39),
    "MIRROR_PAD": (2, 77),
    "MUL": (2, 21),
    "NEG": (1, 42),
    "PAD": (2, 22),
    "PADV2": (2, 43),
    "POW": (1, 56),
    "PRELU": (1, 0),
    "QUANTIZE": (2, 0),
    "REDUCE_MAX": (2, 27),
    "REDUCE_MIN": (2, 27),
    "RELU": (1, 0),
    "RESHAPE": (1, 17),
    "RESIZE_BILINEAR": (3, 15),
    "RESIZE_NEAREST_NEIGHBOR": (3, 74),
    "REVERSE_V2": (1, 0),
    "RSQRT": (1, 0),
    "SELECT_V2": (1, 98),
    "SIN": (1, 0),
    "SOFTMAX": (2, 9),
    "SQRT": (1, 0),
    "STRIDED_SLICE": (2, 32),
    "SUB": (2, 28),
    "SUM": (2, 27),
    "TANH": (2, 0),
    "TILE": (2, 0),
    "TOPK_V2": (2, 34),
    "TRANSPOSE": (2, 26),
    "TRANSPOSE_CONV": (3, 49),
}

# The versions that support int16, if they differ.
WIDE: Mapping[str, int] = {
    "ADD": 3,
    "AVERAGE_POOL_2D": 3,
    "BATCH_MATMUL": 3,
    "CONCATENATION": 3,
    "CONV_2D": 4,
    "DEPTHWISE_CONV_2D": 5,
    "DEQUANTIZE": 3,
    "GATHER": 4,
    "LOGISTIC": 3,
    "MAXIMUM": 4,
    "MAX_POOL_2D": 3,
    "MEAN": 3,
    "MINIMUM": 4,
    "MUL": 4,
    "RESIZE_BILINEAR": 4,
    "REDUCE_MAX": 3,
    "REDUCE_MIN": 3,
    "RESIZE_NEAREST_NEIGHBOR": 4,
    "SOFTMAX": 3,
    "STRIDED_SLICE": 4,
    "SUB": 5,
    "TANH": 3,
    "TRANSPOSE": 4,
}


def plain(rank: int) -> Order:
    return tuple(range(rank))


class TFLiteBuilder:
    """`nodes` are by name: an instruction has the name of its node."""

    def __init__(self, program: Program, nodes: Mapping[str, Node]) -> None:
        self.program = program
        self.nodes = nodes
        self.tensors: list[FileTensor] = []
        self.operators: list[FileOperator] = []
        self.constants: dict[str, np.ndarray] = {}  # of the program, by tensor
        self._layouts: dict[str, dict[Order, int]] = {}

    # -- tensors ---------------------------------------------------------------------------

    def grid(self, name: str) -> Grid:
        if name in self.program.tensors:
            return self.program.tensors[name]
        values = self.constants[name]
        return Grid(values.shape, str(values.dtype))

    def order(self, name: str) -> Order:
        """The first axis order of the tensor; a constant can have any."""
        return next(iter(self._layouts.get(name, {plain(len(self.grid(name).shape)): 0})))

    def make(self, name: str, order: Order, called: str = "") -> int:
        """A tensor of the file for one of the program, as the output of the next
        operator."""
        index = self.hidden(name, order, called or name)
        self.hold(name, order, index)
        return index

    def hold(self, name: str, order: Order, index: int) -> None:
        self._layouts.setdefault(name, {}).setdefault(order, index)

    def hidden(
        self, name: str, order: Order, called: str, shape: Sequence[int] | None = None
    ) -> int:
        """A tensor on the grid of `name` that is not in the program."""
        grid = self.grid(name)
        return self.hidden_on(grid, order, called, shape)

    def hidden_on(
        self, grid: Grid, order: Order, called: str, shape: Sequence[int] | None = None
    ) -> int:
        dims = grid.shape if shape is None else shape
        ordered_dims = tuple(dims[axis] for axis in order)
        scale = () if grid.scale is None else (grid.scale,)
        return self._add(FileTensor(called, ordered_dims, grid.dtype, None, scale, grid.zero_point))

    def hold_constant(self, name: str, values: np.ndarray) -> None:
        """A constant that operators may read by its name, in any order."""
        self.constants[name] = values

    def constant(self, called: str, values: np.ndarray, grid: Grid | None = None) -> int:
        quantized = grid is not None and grid.scale is not None
        scale = (grid.scale,) if grid is not None and grid.scale is not None else ()
        zero_point = grid.zero_point if quantized and grid is not None else 0
        dtype = str(values.dtype)
        return self._add(FileTensor(called, values.shape, dtype, values, scale, zero_point))

    def weight(self, called: str, values: np.ndarray, scale: np.ndarray, axis: int) -> int:
        tensor = FileTensor(
            called, values.shape, str(values.dtype), values, scale.reshape(-1), 0, axis
        )
        return self._add(tensor)

    def _add(self, tensor: FileTensor) -> int:
        self.tensors.append(tensor)
        return len(self.tensors) - 1

    # -- reading ---------------------------------------------------------------------------

    def read(self, name: str, order: Order) -> int:
        """The tensor in this order; transposes it if necessary."""
        if name in self.constants:
            return self._laid_constant(name, order)
        layouts = self._layouts[name]
        if order not in layouts:
            first, index = next(iter(layouts.items()))
            output = self.hidden(name, order, f"{name}_{''.join(map(str, order))}")
            if self._moved(name, first) == self._moved(name, order):
                self.reshape(index, output)
            else:
                moves = np.array([first.index(axis) for axis in order], np.int32)
                self.draw("TRANSPOSE", (index, self.constant(f"{name}_perm", moves)), (output,))
            layouts[order] = output
        return layouts[order]

    def file_orders(self) -> dict[int, tuple[str, Order]]:
        """By file index, the program's tensor and its axis order."""
        return {
            index: (name, order)
            for name, layouts in self._layouts.items()
            for order, index in layouts.items()
        }

    def read_flat(self, name: str) -> int:
        """The tensor with its elements in the program's order; axes of size 1 may be
        anywhere."""
        whole = plain(len(self.grid(name).shape))
        for order, index in self._layouts.get(name, {}).items():
            if self._moved(name, order) == self._moved(name, whole):
                return index
        return self.read(name, whole)

    def read_like(self, name: str, order: Order) -> int:
        """The tensor for an operator that broadcasts it to the rank of `order`."""
        grid = self.grid(name)
        missing = len(order) - len(grid.shape)
        if not missing:
            return self.read(name, order)
        shape = (1,) * missing + grid.shape
        if name in self.constants:
            values = self.constants[name].reshape(shape).transpose(order)
            return self.constant(f"{name}_like", np.ascontiguousarray(values), grid)
        whole = self.hidden(name, plain(len(order)), f"{name}_like", shape)
        self.reshape(self.read(name, plain(len(grid.shape))), whole)
        ordered = self.hidden(name, order, f"{name}_laid", shape)
        perm = self.constant(f"{name}_like_perm", np.array(order, np.int32))
        self.draw("TRANSPOSE", (whole, perm), (ordered,))
        return ordered

    def _laid_constant(self, name: str, order: Order) -> int:
        layouts = self._layouts.setdefault(name, {})
        if order not in layouts:
            values = (
                self.constants[name].transpose(order).copy(order="C")
            )  # keeps a scalar an array
            layouts[order] = self.constant(name, values, self.grid(name))
        return layouts[order]

    def _moved(self, name: str, order: Order) -> list[int]:
        """The order of the axes longer than 1."""
        return [axis for axis in order if self.grid(name).shape[axis] != 1]

    # -- operators -------------------------------------------------------------------------

    def draw(
        self,
        type: str,
        inputs: Sequence[int],
        outputs: Sequence[int],
        options: Fields | None = None,
    ) -> None:
        version, union = KINDS[type]
        if "int16" in {self.tensors[index].dtype for index in (*inputs, *outputs)}:
            version = WIDE.get(type, version)
        operator = FileOperator(type, tuple(inputs), tuple(outputs), version, union, options or {})
        self.operators.append(operator)

    def reshape(self, index: int, output: int) -> None:
        shape = np.array(self.tensors[output].shape, np.int32)
        self.draw("RESHAPE", (index, self.constant(f"shape_{output}", shape)), (output,))

    def scales(self, step: Instruction) -> np.ndarray:
        """The weight scales of the instruction's node."""
        return _scale(self.nodes[step.name], 1)


def _scale(node: Node, index: int) -> Any:
    from_grid = node.inputs[index]
    assert from_grid is not None
    maker = from_grid.producer()
    assert maker is not None
    scale = maker.inputs[1]
    assert scale is not None
    assert scale.const_value is not None
    return scale.const_value.numpy()
