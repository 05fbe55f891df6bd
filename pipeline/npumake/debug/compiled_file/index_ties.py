"""Indices of largest or smallest values, where the values are uncertain.

A file that does not show what TopK, ArgMax or ArgMin reads may have it off by e. Then index i may
stand for index j if |x[i] - x[j]| <= e[i] + e[j]. An index occurs once along the axis of a TopK.
"""

from __future__ import annotations

import numpy as np

from npumake.graph import Node, attribute

AXES = {"ArgMax": 0, "ArgMin": 0, "TopK": -1}  # the operators, with their axis by default


def stands_for(
    node: Node, x: np.ndarray, error: np.ndarray, own: np.ndarray, tap: np.ndarray
) -> np.ndarray:
    """Where each index of `tap` may stand for that of `own`; both have the shape of the output."""
    axis = attribute(node, "axis", AXES[node.op_type])
    has_axis = node.op_type == "TopK" or attribute(node, "keepdims", 1)
    expected, indices = (y if has_axis else np.expand_dims(y, axis) for y in (own, tap))
    if indices.min(initial=0) < 0 or indices.max(initial=0) >= x.shape[axis]:
        return np.zeros(own.shape, bool)
    e = np.broadcast_to(error, x.shape)
    (a, b), (e_a, e_b) = (
        [np.take_along_axis(values, index, axis) for index in (expected, indices)]
        for values in (x, e)
    )
    is_near = (np.abs(a - b) <= e_a + e_b) & _is_first(indices, axis)
    return np.asarray(is_near.reshape(own.shape))


def _is_first(indices: np.ndarray, axis: int) -> np.ndarray:
    """Where an index has not come before along the axis."""
    moved = np.moveaxis(indices, axis, -1)
    order = np.argsort(moved, axis=-1, kind="stable")
    ordered = np.take_along_axis(moved, order, -1)
    is_first = np.ones(moved.shape, bool)
    is_first[..., 1:] = ordered[..., 1:] != ordered[..., :-1]
    back = np.empty_like(is_first)
    np.put_along_axis(back, order, is_first, -1)
    return np.moveaxis(back, -1, axis)
