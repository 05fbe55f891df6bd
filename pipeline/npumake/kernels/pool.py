"""Pooling. A maximum or sum over a box is computed along each axis in turn.

pads  are effective: with ceil_mode those of `pool_pads`
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
    """The maximum of each window of x (N, C, *spatial), in the type of x; the padding is
    `lowest`."""
    return _slide(np.maximum, padded(x, pads, lowest, x.dtype), kernel, strides, dilations)


def sum_pool(
    x: Ints,
    kernel: Sequence[int],
    pads: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
) -> Int64:
    """The exact sum of each window of x (N, C, *spatial) without zero point; the padding is
    0."""
    return _slide(np.add, padded(x, pads, 0, np.int64), kernel, strides, dilations)


def counts(
    spatial: Sequence[int],
    kernel: Sequence[int],
    pads: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    counted_pads: Sequence[int],
) -> Int64:
    """Elements under each window, of shape (*out): the divisors of an average.

    Counted are the input's elements and those of `counted_pads`: zeros, or the declared pads for
    count_include_pad. Elements that ceil_mode adds beyond these never count.
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
    """Effective pads: floor with them gives the windows of ONNX pooling.

    With ceil_mode a last window may overhang the end, but not start in the end padding (ONNX
    specification of MaxPool and AveragePool).
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
