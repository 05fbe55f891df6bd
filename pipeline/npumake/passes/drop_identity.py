"""Removes nodes that return their input: Identity, Dropout at inference, Cast to the same type, a
Reshape, Transpose, Slice, Pad, Expand or Resize without effect, x + 0, x * 1 and the like."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from npumake.graph import Graph, Node, array, attribute


def drop_identity(graph: Graph) -> int:
    return sum(
        graph.bypass(node) for node in graph.nodes(*IDENTITIES) if IDENTITIES[node.op_type](node)
    )


def _keeps_shape(node: Node) -> bool:
    x, y = node.inputs[0], node.outputs[0]
    if x is None or x.shape is None or y.shape is None:
        return False
    static = all(isinstance(dim, int) for dim in (*x.shape, *y.shape))
    return static and tuple(x.shape) == tuple(y.shape)


def _keeps_type(node: Node) -> bool:
    x, y = node.inputs[0], node.outputs[0]
    return x is not None and x.dtype is not None and x.dtype == y.dtype


def _is_inference(node: Node) -> bool:
    """A Dropout outside training whose mask is unread."""
    if len(node.inputs) > 2 and node.inputs[2] is not None:
        training = array(node.inputs[2])
        if training is None or training.any():
            return False
    return all(not value.uses() and not value.is_graph_output() for value in node.outputs[1:])


def _keeps_order(node: Node) -> bool:
    order = attribute(node, "perm")
    return order is not None and tuple(order) == tuple(range(len(order)))


def _has(node: Node, index: int, number: float) -> bool:
    """Whether the input is constant and every element equals the number."""
    values = array(node.inputs[index]) if index < len(node.inputs) else None
    return values is not None and bool((values == number).all())


def _by(neutral: float) -> Callable[[Node], bool]:
    """A binary operator whose second operand is neutral."""
    return lambda node: _keeps_shape(node) and _has(node, 1, neutral)


def _is_alone(node: Node) -> bool:
    return len(node.inputs) == 1


def _steps_forward(node: Node) -> bool:
    """Whether a Slice takes as many elements as its input has, in order: all of them."""
    return _keeps_shape(node) and (len(node.inputs) < 5 or _has(node, 4, 1))


def _is_unbounded(node: Node) -> bool:
    """A Clip without bounds, or with the limits of its type."""
    element = node.outputs[0].dtype
    if element is None or not element.is_floating_point():
        return not any(node.inputs[1:])
    limits = np.finfo(element.numpy())
    bounds = [array(value) for value in node.inputs[1:]]
    open_at = zip(node.inputs[1:], bounds, (limits.min, limits.max), (-1, 1), strict=False)
    return all(
        value is None or (bound is not None and bool((sign * bound >= sign * limit).all()))
        for value, bound, limit, sign in open_at
    )


def _scales_by_one(node: Node) -> bool:
    """Whether the Resize maps pixel i to i at scale 1, as all but two modes do."""
    mode = attribute(node, "coordinate_transformation_mode", "half_pixel")
    if mode in ("tf_crop_and_resize", "tf_half_pixel_for_nn") or not _keeps_shape(node):
        return False
    sized = len(node.inputs) > 3 and node.inputs[3] is not None
    return sized or _has(node, 2, 1)


IDENTITIES: dict[str, Callable[[Node], bool]] = {
    "Add": _by(0),
    "Cast": _keeps_type,
    "Clip": _is_unbounded,
    "Concat": _is_alone,
    "Div": _by(1),
    "Dropout": _is_inference,
    "Expand": _keeps_shape,
    "Flatten": _keeps_shape,
    "Identity": lambda _: True,
    "Max": _is_alone,
    "Mean": _is_alone,
    "Min": _is_alone,
    "Mul": _by(1),
    "Pad": lambda node: _has(node, 1, 0),
    "Pow": _by(1),
    "Reshape": _keeps_shape,
    "Resize": _scales_by_one,
    "Slice": _steps_forward,
    "Squeeze": _keeps_shape,
    "Sub": _by(0),
    "Sum": _is_alone,
    "Tile": _keeps_shape,
    "Transpose": _keeps_order,
    "Unsqueeze": _keeps_shape,
}
