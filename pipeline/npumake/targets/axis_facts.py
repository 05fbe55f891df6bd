"""Facts about the axes that a node works along, and those it changes."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np

from npumake.graph import Node, array, attribute
from npumake.targets.expression import Fact
from npumake.targets.shape_facts import data, dims_of, operand

DEFAULT_AXIS = {"ArgMax": 0, "ArgMin": 0, "Flatten": 1, "Gather": 0, "Softmax": -1, "TopK": -1}


def axis_of(node: Node) -> Fact:
    dims = dims_of(data(node))
    axis = attribute(node, "axis", DEFAULT_AXIS.get(node.op_type))
    return None if dims is None or axis is None or not dims else int(axis) % len(dims)


def axes_of(node: Node) -> Fact:
    """Of a reduction; all of them if none is named."""
    dims, value = dims_of(data(node)), operand(node, 1)
    listed_axes = attribute(node, "axes") if value is None else array(value)
    if dims is None or not dims or (listed_axes is None and value is not None):
        return None
    axes = (
        range(len(dims))
        if listed_axes is None
        else (int(axis) % len(dims) for axis in np.ravel(listed_axes))
    )
    return tuple(sorted(axes))


def reduced(node: Node) -> Fact:
    """The number of elements that one result reduces."""
    dims, axes = dims_of(data(node)), axes_of(node)
    if node.op_type in ("ArgMax", "ArgMin"):
        axis = axis_of(node)
        axes = (axis,) if isinstance(axis, int) else None
    if dims is None or not isinstance(axes, tuple):
        return None
    return prod(dims[axis] for axis in axes if isinstance(axis, int))


def changed_axes(node: Node) -> Fact:
    input_dims, output_dims = dims_of(data(node)), dims_of(node.outputs[0])
    if input_dims is None or output_dims is None or len(input_dims) > len(output_dims):
        return None
    input_dims = (1,) * (len(output_dims) - len(input_dims)) + input_dims
    return sum(a != b for a, b in zip(input_dims, output_dims, strict=True))


def pad_axes(node: Node) -> Fact:
    """The axes that a Pad makes longer."""
    input_dims, output_dims = dims_of(data(node)), dims_of(node.outputs[0])
    if input_dims is None or output_dims is None or len(input_dims) != len(output_dims):
        return None
    return tuple(n for n, (a, b) in enumerate(zip(input_dims, output_dims, strict=True)) if a != b)


def scale(from_end: int) -> Callable[[Node], Fact]:
    """How many times longer a side becomes."""

    def fact(node: Node) -> Fact:
        input_dims, output_dims = dims_of(data(node)), dims_of(node.outputs[0])
        if (
            input_dims is None
            or output_dims is None
            or min(len(input_dims), len(output_dims)) < from_end
        ):
            return None
        return output_dims[-from_end] / input_dims[-from_end] if input_dims[-from_end] else None

    return fact


def changes_only_hw(node: Node) -> Fact:
    input_dims, output_dims = dims_of(data(node)), dims_of(node.outputs[0])
    return (
        None if input_dims is None or output_dims is None else input_dims[:-2] == output_dims[:-2]
    )


def indices_fit(node: Node) -> Fact:
    """Of GatherElements: beside the gathered axis the indices are no longer than the data."""
    data, indices, axis = dims_of(operand(node, 0)), dims_of(operand(node, 1)), _axis_or_first(node)
    if data is None or indices is None or len(data) != len(indices):
        return None
    return all(i <= d for n, (i, d) in enumerate(zip(indices, data, strict=True)) if n != axis)


def _axis_or_first(node: Node) -> Fact:
    dims = dims_of(data(node))
    axis = int(attribute(node, "axis", 0))
    return None if not dims else axis % len(dims)


def equal_parts(node: Node) -> Fact:
    parts = {dims_of(value) for value in node.outputs}
    return None if None in parts else len(parts) == 1
