"""The float nodes that TensorFlow Lite's integer kernels support.

Other nodes stay float from the start, so that every stage sees the same node.

SAME pads, with n in and m out along an axis, stride s and a window that spans k:

    m = ceil(n / s)        begin = max((m - 1) s + k - n, 0) // 2

Source: ComputePaddingHeightWidth and the int8 kernels in tensorflow/lite/kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import get_args

import numpy as np

from npumake.graph import Node, array, attribute, open_dimensions, shape
from npumake.kernels import pool, resize

MAX_AXES = 4  # of a windowed input, with batch and channel
MIN_AXES = 3  # a row counts as an image of one row
SCALE_TOLERANCE = 1e-6  # relative; one of the scales is float32
LINEAR = ("align_corners", "asymmetric", "half_pixel", "pytorch_half_pixel")


def is_same(
    sizes: tuple[Sequence[int], Sequence[int]],
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    begins: Sequence[int],
) -> bool:
    """Whether SAME gives the window's positions; `sizes` are (input, output)."""
    for n, m, k, s, d, begin in zip(*sizes, kernel, strides, dilations, begins, strict=True):
        total = max((m - 1) * s + (k - 1) * d + 1 - n, 0)
        if m != -(-n // s) or begin != total // 2:
            return False
    return True


def is_picked(
    sizes: tuple[Sequence[int], Sequence[int]],
    kernel: Sequence[int],
    strides: Sequence[int],
    begins: Sequence[int],
) -> bool:
    """Whether SAME with stride 1 begins at the same pads and includes every needed position."""
    begin = [(k - 1) // 2 for k in kernel]
    reached = ((m - 1) * s < n for n, m, s in zip(*sizes, strides, strict=True))
    return list(begins) == begin and all(reached)


def _slides(node: Node) -> bool:
    x = node.inputs[0]
    return x is not None and MIN_AXES <= len(shape(x)) <= MAX_AXES


def _averages(node: Node) -> bool:
    """All windows have one size, or the pads are those of SAME and do not count."""
    if not _slides(node):
        return False
    x = node.inputs[0]
    assert x is not None
    spatial, kernel = shape(x)[2:], attribute(node, "kernel_shape")
    rank = len(spatial)
    strides = attribute(node, "strides", (1,) * rank)
    dilations = attribute(node, "dilations", (1,) * rank)
    own = attribute(node, "pads", (0,) * 2 * rank)
    ceil = bool(attribute(node, "ceil_mode", 0))
    pads = pool.pool_pads(spatial, kernel, own, strides, dilations, ceil_mode=ceil)
    no_pads = [0] * len(own)
    with_pads, alone = (
        pool.counts(spatial, kernel, pads, strides, dilations, counted)
        for counted in (own, no_pads)
    )
    counts = with_pads if attribute(node, "count_include_pad", 0) else alone
    if max(dilations) > 1:
        return False
    if (counts == prod(kernel)).all():
        return True
    sizes = (spatial, shape(node.outputs[0])[2:])
    is_same_padding = is_same(sizes, kernel, strides, dilations, pads[:rank])
    return np.array_equal(counts, alone) and (
        is_same_padding or is_picked(sizes, kernel, strides, pads[:rank])
    )


def coordinates(node: Node) -> resize.Coordinates:
    return attribute(node, "coordinate_transformation_mode", "half_pixel")


def reads_places(node: Node) -> bool:
    """Whether a Resize copies input elements at coordinates that only depend on the sizes."""
    is_known = coordinates(node) in get_args(resize.Coordinates)
    return attribute(node, "mode", "nearest") == "nearest" and is_known


def is_bilinear(node: Node) -> bool:
    """Whether a linear Resize covers height and width at TensorFlow Lite's coordinates, which
    only depend on the sizes."""
    x, how = node.inputs[0], coordinates(node)
    assert x is not None
    before, after = shape(x), shape(node.outputs[0])
    if attribute(node, "mode", "nearest") != "linear" or how not in LINEAR:
        return False
    if len(before) != MAX_AXES or before[:2] != after[:2] or attribute(node, "antialias", 0):
        return False
    axes = list(zip(before, after, scales(node), strict=True))
    if any(n == m and scale != 1 for n, m, scale in axes[:2]):
        return False
    if how == "pytorch_half_pixel" and any(m == 1 != n for n, m, _ in axes[2:]):
        return False
    stretched = any(abs(m / n / scale - 1) > SCALE_TOLERANCE for n, m, scale in axes[2:])
    return not stretched or how == "align_corners"


def scales(node: Node) -> list[float]:
    """The scale of each axis of a Resize, as the model declares it, else output size / input
    size."""
    x = node.inputs[0]
    assert x is not None
    result = [m / n for n, m in zip(shape(x), shape(node.outputs[0]), strict=True)]
    declared = array(node.inputs[2]) if len(node.inputs) > 2 else None
    if declared is not None and declared.size:
        for axis, scale in zip(
            attribute(node, "axes", range(declared.size)), declared, strict=True
        ):
            result[axis] = float(scale)
    return result


def resizes(node: Node) -> bool:
    return reads_places(node) or is_bilinear(node)


LIMITS: Mapping[str, Callable[[Node], bool]] = {
    **dict.fromkeys(("ArgMax", "ArgMin"), lambda node: not attribute(node, "select_last_index", 0)),
    "AveragePool": _averages,
    "Conv": _slides,
    "ConvTranspose": _slides,
    "HardSigmoid": lambda node: attribute(node, "alpha", 0.2) > 0,
    "MaxPool": _slides,
    "Resize": resizes,
}


def supports(node: Node) -> bool:
    """Whether LiteRT computes the node; an unknown shape counts as within the limits."""
    around = [value for value in (*node.inputs[:1], *node.outputs[:1]) if value is not None]
    if node.op_type not in LIMITS or any(map(open_dimensions, around)):
        return True
    return LIMITS[node.op_type](node)
