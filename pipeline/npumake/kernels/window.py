"""Sliding windows, for convolution and pooling.

Along an axis of size n with pads b and e, a window of k taps with dilation d fits

    (n + b + e - ((k - 1) * d + 1)) // s + 1

times at stride s. `pads` has ONNX's order: every begin, then every end. The spatial axes come last,
in any number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view

Scalar = TypeVar("Scalar", bound=np.generic)


def extent(kernel: int, dilation: int) -> int:
    """Elements from the first tap of a window to the last, both included."""
    return (kernel - 1) * dilation + 1


def fits(size: int, kernel: int, stride: int, dilation: int) -> int:
    """Number of windows along a padded axis. Raises ValueError if none fits."""
    count = (size - extent(kernel, dilation)) // stride + 1
    if count < 1:
        raise ValueError(f"a window of {kernel} taps {dilation} apart does not fit in {size}")
    return count


def padded(
    x: npt.NDArray[Scalar], pads: Sequence[int], value: float, dtype: npt.DTypeLike
) -> npt.NDArray[np.generic]:
    """`x` as `dtype`, with `value` around its last len(pads) / 2 axes. Raises ValueError if < 0."""
    if min(pads) < 0:
        raise ValueError(f"negative padding: {list(pads)}")
    rank = len(pads) // 2
    inside = (slice(b, b + n) for b, n in zip(pads, x.shape[-rank:], strict=False))
    interior: tuple[Any, ...] = (..., *inside)
    sizes = [n + b + e for n, b, e in zip(x.shape[-rank:], pads, pads[rank:], strict=False)]
    result = np.full((*x.shape[:-rank], *sizes), value, dtype)
    result[interior] = x
    return result


def windows(
    x: npt.NDArray[Scalar],
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
) -> npt.NDArray[Scalar]:
    """A writable view of shape (*leading, *kernel, *out) of `x` (*leading, *padded spatial).

    Different windows share memory; within one tap no element repeats.
    """
    rank = len(kernel)
    for size, k, s, d in zip(x.shape[-rank:], kernel, strides, dilations, strict=True):
        fits(size, k, s, d)
    extents = [extent(k, d) for k, d in zip(kernel, dilations, strict=True)]
    axes = tuple(range(-rank, 0))
    view = sliding_window_view(x, extents, axes, writeable=True)
    steps = (slice(None, None, step) for step in (*strides, *dilations))
    strided: tuple[Any, ...] = (..., *steps)
    return np.moveaxis(view[strided], axes, range(x.ndim - rank, x.ndim))
