"""Facts about the shape of what a node computes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from npumake.graph import Node, Value, array, attribute, is_float
from npumake.targets.expression import Fact

Shape: TypeAlias = tuple[int, ...]


def data(node: Node) -> Value | None:
    """The data input of a node: the first that is not a constant."""
    operands = [value for value in node.inputs if value is not None]
    computed = [value for value in operands if array(value) is None]
    return next(iter([*filter(is_float, computed), *computed, *operands]), None)


def dims_of(value: Value | None) -> Shape | None:
    if value is None or value.shape is None:
        return None
    sizes = tuple(size for size in value.shape if isinstance(size, int))
    return sizes if len(sizes) == len(value.shape) else None


def operand(node: Node, index: int) -> Value | None:
    return node.inputs[index] if index < len(node.inputs) else None


def of_shape(question: Callable[[Shape], Fact]) -> Callable[[Node], Fact]:
    """A fact about the shape of what the node computes on."""

    def fact(node: Node) -> Fact:
        dims = dims_of(data(node))
        return None if dims is None else question(dims)

    return fact


def of_output(question: Callable[[Shape], Fact]) -> Callable[[Node], Fact]:
    def fact(node: Node) -> Fact:
        dims = dims_of(node.outputs[0])
        return None if dims is None else question(dims)

    return fact


def rank_of(index: int) -> Callable[[Node], Fact]:
    return lambda node: None if (dims := dims_of(operand(node, index))) is None else len(dims)


def side(from_end: int) -> Callable[[Shape], Fact]:
    """A side of an image, counted from the last axis."""

    def side(dims: Shape) -> Fact:
        if len(dims) == 2:
            return 1
        return dims[-from_end] if len(dims) >= from_end + 2 and len(dims) >= 4 else None

    return side


def channels(dims: Shape) -> Fact:
    return dims[1] if len(dims) > 1 else None


def rnn_batch(node: Node) -> Fact:
    """A sequence is (time, N, C), and (N, time, C) with layout 1."""
    dims = dims_of(data(node))
    at = 0 if attribute(node, "layout", 0) else 1
    return None if dims is None or len(dims) < 2 else dims[at]


def padded(dims: Shape, width: int, channels: int) -> Fact:
    """The numbers of an image whose width and channels are filled up to a multiple."""
    if len(dims) != 4:
        return None
    n, c, h, w = dims
    return n * -(-c // channels) * channels * h * -(-w // width) * width
