"""Pooling. A maximum or a sum over a box is the maximum or sum along each axis in turn.

pads  are effective: with ceil_mode, what `pool_pads` gives
mean  = sum_pool / counts, divided where the scale is applied
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from npumake.kernels.arrays import Int64, Ints
from npumake.kernels.window import extent, fits, padded

Array: TypeAlias = npt.NDArray[Any]


def max_pool(
    x: Ints,
    kernel: Sequence[int],
    pads: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    lowest: int,
) -> Ints:
    """The largest of each window of x (N, C, *spatial), in the type of x; padding is `lowest`."""
    return _slide(np.maximum, padded(x, pads, lowest, x.dtype), kernel, strides, dilations)


def sum_pool(
    x: Ints,
    kernel: Sequence[int],
    pads: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
) -> Int64:
    """The exact sum of each window of x (N, C, *spatial), zero point subtracted; padding is 0."""
    return _slide(np.add, padded(x, pads, 0, np.int64), kernel, strides, dilations)


def counts(
    spatial: Sequence[int],
    kernel: Sequence[int],
    pads: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    counted_pads: Sequence[int],
) -> Int64:
    """Elements under each window, of shape (*out): what an average divides by.

    Counted are the elements of the input and of `counted_pads`: zeros, or for count_include_pad
    the pads the model declares. Never counted is what ceil_mode adds beyond those.
    """
    rank = len(spatial)
    along = []
    for axis, (n, k, s, d) in enumerate(zip(spatial, kernel, strides, dilations, strict=True)):
        begin, end = pads[axis], pads[rank + axis]
        starts = np.arange(fits(n + begin + end, k, s, d)) * s - begin
        taps = starts[:, None] + np.arange(k) * d
        inside = (taps >= -counted_pads[axis]) & (taps < n + counted_pads[rank + axis])
        along.append(inside.sum(axis=1, dtype=np.int64))
    return reduce(np.multiply.outer, along)


def pool_pads(
    spatial: Sequence[int],
    kernel: Sequence[int],
    pads: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    ceil_mode: bool,
) -> tuple[int, ...]:
    """The pads with which windows that just fit are the windows of ONNX pooling.

    With ceil_mode a last window may hang over the end, but not start in the end padding
    (the ONNX operator specification of MaxPool and AveragePool).
    """
    if not ceil_mode:
        return tuple(pads)
    rank = len(spatial)
    ends = []
    for axis, (n, k, s, d) in enumerate(zip(spatial, kernel, strides, dilations, strict=True)):
        begin, end = pads[axis], pads[rank + axis]
        last = -(-(n + begin + end - extent(k, d)) // s)
        if last * s >= n + begin:
            last -= 1
        ends.append(max(0, last * s + extent(k, d) - n - begin))
    return (*pads[:rank], *ends)


def _slide(
    combine: Callable[[Array, Array], Array],
    x: Array,
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
) -> Array:
    first = x.ndim - len(kernel)
    for axis, (k, s, d) in enumerate(zip(kernel, strides, dilations, strict=True), first):
        reach = (fits(x.shape[axis], k, s, d) - 1) * s + 1
        before = (slice(None),) * axis
        x = reduce(combine, (x[(*before, slice(t, t + reach, s))] for t in range(0, k * d, d)))
    return x
