"""Facts about the windows of pools and convolutions."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from npumake.graph import Node, attribute
from npumake.targets.expression import Fact
from npumake.targets.shape_facts import Shape, data, dims_of, operand


def kernel_of(node: Node) -> Shape | None:
    """Of a pool or a convolution."""
    weight = dims_of(operand(node, 1))
    if node.op_type in ("Conv", "ConvTranspose") and weight is not None:
        return weight[2:]
    kernel = attribute(node, "kernel_shape")
    return None if kernel is None else tuple(kernel)


def window(name: str, from_end: int) -> Callable[[Node], Fact]:
    """One number of kernel, strides or dilations."""

    def fact(node: Node) -> Fact:
        kernel = kernel_of(node)
        values = kernel if name == "kernel" else attribute(node, name, (1,) * len(kernel or ()))
        return None if values is None or len(values) < from_end else int(values[-from_end])

    return fact


def pads_of(node: Node) -> Shape | None:
    """The larger of begin and end, per axis."""
    kernel = kernel_of(node)
    if kernel is None:
        return None
    pads = tuple(attribute(node, "pads", (0,) * 2 * len(kernel)))
    half = len(kernel)
    if len(pads) != 2 * half:
        return None
    return tuple(max(pair) for pair in zip(pads[:half], pads[half:], strict=True))


def pad(from_end: int) -> Callable[[Node], Fact]:
    def fact(node: Node) -> Fact:
        pads = pads_of(node)
        return None if pads is None or len(pads) < from_end else pads[-from_end]

    return fact


def group_of(node: Node) -> int:
    return int(attribute(node, "group", 1))


def per_group(node: Node) -> Fact:
    """Channels that one kernel reads."""
    dims, group = dims_of(data(node)), group_of(node)
    return None if dims is None or len(dims) < 2 or group < 1 else dims[1] // group


def kernel_channels(node: Node) -> Fact:
    dims = dims_of(operand(node, 1))
    return None if dims is None or len(dims) < 2 else dims[1]


def phase_size(node: Node) -> Fact:
    """The numbers of a transposed convolution's kernel that one output reads: per axis
    (k - 1 + pad % stride) // stride + 1."""
    kernel, pads, channels = kernel_of(node), pads_of(node), per_group(node)
    if kernel is None or pads is None or not isinstance(channels, int):
        return None
    strides = attribute(node, "strides", (1,) * len(kernel))
    if len(strides) != len(kernel) or min(strides, default=0) < 1:
        return None
    sides = ((k - 1 + p % s) // s + 1 for k, p, s in zip(kernel, pads, strides, strict=True))
    return channels * prod(sides)


def is_plain(node: Node) -> Fact:
    dilations = attribute(node, "dilations", (1,))
    return group_of(node) == 1 and set(dilations) == {1}
