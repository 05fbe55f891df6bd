"""The facts of a node for the conditions of a target's file: FACTS, one line each.

An image is (N, C, H, W), or (N, C, D, H, W); a matrix (N, C) is an image of one pixel. `axis` and
`axes` count from 0. Of begin and end pads the larger one counts. A fact that the operator does not
have, or that is not known before the model runs, is None.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Any

from npumake.graph import Node, array, attribute, only_consumer, producer
from npumake.targets import axis_facts, broadcast, window_facts
from npumake.targets.expression import Fact, Look
from npumake.targets.shape_facts import (
    Shape,
    channels,
    dims_of,
    of_output,
    of_shape,
    operand,
    padded,
    rank_of,
    rnn_batch,
    side,
)

DEFAULT_MODE = {
    "DepthToSpace": "DCR",
    "GridSample": "linear",
    "Pad": "constant",
    "Resize": "nearest",
    "Upsample": "nearest",
}


def facts_of(node: Node) -> Look:
    """The facts of one node by name, each computed on first use and cached; None for an unknown
    name."""
    facts: dict[str, Fact] = {}

    def look(name: str) -> Fact:
        if name not in facts:
            facts[name] = FACTS[name](node) if name in FACTS else None
        return facts[name]

    return look


def _constants(node: Node) -> Fact:
    return sum(array(value) is not None for value in node.inputs if value is not None)


def _shapes(node: Node) -> list[Shape] | None:
    shapes = [dims_of(value) for value in node.inputs if value is not None]
    static_shapes = [dims for dims in shapes if dims is not None]
    return static_shapes if len(static_shapes) == len(shapes) else None


def _of_operands(question: Callable[[list[Shape]], Fact]) -> Callable[[Node], Fact]:
    def fact(node: Node) -> Fact:
        shapes = _shapes(node)
        return None if shapes is None else question(shapes)

    return fact


def _matmul_sides(inner: bool) -> Callable[[list[Shape]], Fact]:
    """The longest of the two last axes of both operands, or of those before."""

    def longest(shapes: list[Shape]) -> Fact:
        sides = [size for dims in shapes for size in (dims[-2:] if inner else dims[:-2])]
        return max(sides, default=1)

    return longest


def _constant_has_zero(node: Node) -> Fact:
    arrays = [array(value) for value in node.inputs]
    return any(bool((numbers == 0).any()) for numbers in arrays if numbers is not None)


def _exponent_size(node: Node) -> Fact:
    dims = dims_of(operand(node, 1))
    return None if dims is None else prod(dims)


def _is_output(node: Node) -> Fact:
    """Whether it is a model output, directly or through a clamp, without other readers."""
    output = node.outputs[0]
    reader = only_consumer(output)
    if reader is not None and reader.op_type in ("Clip", "Relu"):
        output = reader.outputs[0]
    return output.is_graph_output() and not output.uses()


def _has_residual_add(node: Node) -> Fact:
    """Whether its output is only added to another computed tensor."""
    reader = only_consumer(node.outputs[0])
    if reader is None or reader.op_type != "Add":
        return False
    return all(v is not None and producer(v) is not None for v in reader.inputs)


def _text(name: str, default: str = "") -> Callable[[Node], Fact]:
    """A text among the attributes; unknown without a value and a default."""
    return lambda node: str(attribute(node, name, default)) or None


def _number(name: str, default: int | None = None) -> Callable[[Node], Fact]:
    def fact(node: Node) -> Fact:
        value: Any = attribute(node, name, default)
        return max(value, default=0) if isinstance(value, tuple) else value

    return fact


FACTS: Mapping[str, Callable[[Node], Fact]] = {
    "rank": of_shape(len),
    "rank_a": rank_of(0),
    "rank_b": rank_of(1),
    "out_rank": of_output(len),
    "batch": of_shape(lambda dims: dims[0] if dims else None),
    "channels": of_shape(channels),
    "rnn_batch": rnn_batch,
    "depth": of_shape(lambda dims: dims[2] if len(dims) == 5 else None),
    "height": of_shape(side(2)),
    "width": of_shape(side(1)),
    "out_channels": of_output(channels),
    "outermost": of_shape(lambda dims: dims[0] if dims else 1),
    "longest": of_shape(lambda dims: max(dims[1:], default=1)),
    "elements": of_shape(prod),
    "elements_8w4c": of_shape(lambda dims: padded(dims, 8, 4)),
    "elements_32c": of_shape(lambda dims: padded(dims, 1, 32)),
    "kernel_d": window_facts.window("kernel", 3),
    "kernel_h": window_facts.window("kernel", 2),
    "kernel_w": window_facts.window("kernel", 1),
    "stride_h": window_facts.window("strides", 2),
    "stride_w": window_facts.window("strides", 1),
    "dilation_h": window_facts.window("dilations", 2),
    "dilation_w": window_facts.window("dilations", 1),
    "pad_d": window_facts.pad(3),
    "pad_h": window_facts.pad(2),
    "pad_w": window_facts.pad(1),
    "output_padding": _number("output_padding", 0),
    "channels_per_group": window_facts.per_group,
    "phase_size": window_facts.phase_size,
    "kernel_channels": window_facts.kernel_channels,
    "plain": window_facts.is_plain,
    "axis": axis_facts.axis_of,
    "axes": axis_facts.axes_of,
    "keepdims": _number("keepdims", 1),
    "reduced": axis_facts.reduced,
    "changed_axes": axis_facts.changed_axes,
    "pad_axes": axis_facts.pad_axes,
    "scale_h": axis_facts.scale(2),
    "scale_w": axis_facts.scale(1),
    "changes_only_hw": axis_facts.changes_only_hw,
    "indices_rank": rank_of(1),
    "indices_fit": axis_facts.indices_fit,
    "equal_parts": axis_facts.equal_parts,
    "mode": lambda node: _text("mode", DEFAULT_MODE.get(node.op_type, ""))(node),
    "padding_mode": _text("padding_mode", "zeros"),
    "coordinates": _text("coordinate_transformation_mode", "half_pixel"),
    "block": _number("blocksize"),
    "sorted": _number("sorted", 1),
    "constants": _constants,
    "constant_left": lambda node: array(operand(node, 0)) is not None,
    "constant_has_zero": _constant_has_zero,
    "collapsed_rank": _of_operands(broadcast.collapsed_rank),
    "merged_rank": _of_operands(broadcast.merged_rank),
    "broadcast_operands": _of_operands(broadcast.repeated_operands),
    "batch_is_broadcast": _of_operands(broadcast.repeats_first),
    "pairing": _of_operands(broadcast.pairing),
    "left_mixes": _of_operands(broadcast.left_mixes),
    "right_leads": _of_operands(broadcast.right_leads),
    "form": _of_operands(broadcast.form),
    "inner_sides": _of_operands(_matmul_sides(True)),
    "outer_sides": _of_operands(_matmul_sides(False)),
    "exponent_size": _exponent_size,
    "is_output": _is_output,
    "residual_add": _has_residual_add,
}
