"""Convolution of integers, exact, in one, two or three spatial dimensions.

    y[n, o, i] = sum over c, t of  w[o, c, t] * x[n, c, s * i + d * t - p]

x and w have had their zero points subtracted, so the padding is 0. The windows of x become the
columns of a matrix (im2col) for one product per group; with a single channel per group there is
no sum over c, and a multiply-add per tap is faster. The transpose scatters where this gathers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from pipeline.kernels.arrays import Int64, Ints
from pipeline.kernels.matmul import exact_float
from pipeline.kernels.window import extent, fits, padded, windows

BLOCK_BYTES = 64 << 20  # of im2col at a time

Index: TypeAlias = tuple[Any, ...]
Array: TypeAlias = npt.NDArray[Any]  # float32 or float64 that holds exact integers


def conv(
    x: Ints,
    weight: Ints,
    pads: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    group: int,
) -> Int64:
    """ONNX Conv without bias: x (N, C, *spatial), weight (O, C / group, *kernel) -> (N, O, *out).

    Raises ValueError if the kernel does not fit, OverflowError if a sum could exceed 2**53.
    """
    outputs, depth, *kernel = weight.shape
    exact = exact_float(x, weight, tuple(range(1, weight.ndim)))
    samples = padded(x, pads, 0, exact)
    out = [fits(*axis) for axis in zip(samples.shape[2:], kernel, strides, dilations, strict=True)]
    result = np.empty((len(x), group, outputs // group, *out), np.int64)
    weights = weight.reshape(group, outputs // group, depth, *kernel).astype(exact)
    fill = _multiply_add if depth == 1 and group > 1 else _multiply
    for sample, into in zip(samples, result, strict=True):
        grouped = sample.reshape(group, depth, *sample.shape[1:])
        fill(windows(grouped, kernel, strides, dilations), weights, into)
    return result.reshape(len(x), outputs, *out)


def conv_transpose(
    x: Ints,
    weight: Ints,
    pads: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    group: int,
) -> Int64:
    """ONNX ConvTranspose without bias: x (N, C, *in), weight (C, O / group, *kernel).

    out = stride * (in - 1) + dilation * (kernel - 1) + 1 - begin - end; an `output_padding` is
    given by subtracting it from the end pads, which may so become negative.
    Raises OverflowError if a sum could exceed 2**53.
    """
    channels, outputs, *kernel = weight.shape
    inputs, rank = x.shape[2:], len(kernel)
    weights = weight.reshape(group, channels // group, outputs, -1)
    exact = exact_float(x, weights, (1, 3))
    rows = np.moveaxis(weights, 1, -1).reshape(group, -1, channels // group).astype(exact)
    whole = [
        (n - 1) * s + extent(k, d)
        for n, k, s, d in zip(inputs, kernel, strides, dilations, strict=True)
    ]
    size = [n - b - e for n, b, e in zip(whole, pads, pads[rank:], strict=False)]
    inside = (slice(b, b + n) for b, n in zip(pads, size, strict=False))
    kept: Index = (..., *inside)
    result = np.zeros((len(x), group, outputs, *size), np.int64)
    for sample, into in zip(x.astype(exact), result, strict=True):
        canvas = np.zeros((group, outputs, *whole), exact)
        grouped = sample.reshape(group, channels // group, *inputs)
        _scatter(grouped, rows, windows(canvas, kernel, strides, dilations))
        part = canvas[kept]
        into[tuple(slice(n) for n in part.shape)] = part
    return result.reshape(len(x), group * outputs, *size)


def _multiply(view: Array, weights: Array, into: Int64) -> None:
    """One matrix product per group: view (G, C, *kernel, *out), into (G, O, *out)."""
    group, outputs = weights.shape[:2]
    matrix = weights.reshape(group, outputs, -1)
    out = into.shape[2:]
    later: Index = (slice(None),) * (len(out) - 1)
    for rows in _blocks(out[0], view.nbytes // out[0]):
        block: Index = (..., rows, *later)
        columns = view[block].reshape(group, matrix.shape[2], -1)
        into[:, :, rows] = (matrix @ columns).reshape(group, outputs, -1, *out[1:])


def _multiply_add(view: Array, weights: Array, into: Int64) -> None:
    """Depthwise: view (G, 1, *kernel, *out), weights (G, O, 1, *kernel), into (G, O, *out)."""
    rank = into.ndim - 2
    total = np.zeros(into.shape, view.dtype)
    for tap in np.ndindex(weights.shape[3:]):
        at = (slice(None), slice(None), *tap)
        total += weights[:, :, 0][at].reshape(*weights.shape[:2], *(1,) * rank) * view[at]
    into[...] = total


def _scatter(x: Array, matrix: Array, view: Array) -> None:
    """view[tap] += weight[tap] * x: x (G, C, *in), view (G, O, *kernel, *in) of the canvas."""
    group, depth, *inputs = x.shape
    kernel = view.shape[2 : 2 + len(inputs)]
    for rows in _blocks(inputs[0], view.nbytes // inputs[0]):
        columns = x[:, :, rows].reshape(group, depth, -1)
        products = (matrix @ columns).reshape(group, -1, *kernel, *x[:, :, rows].shape[2:])
        for tap in np.ndindex(kernel):
            at = (slice(None), slice(None), *tap)
            view[(*at, rows)] += products[at]


def _blocks(rows: int, row_bytes: int) -> Iterator[slice]:
    step = max(1, BLOCK_BYTES // max(row_bytes, 1))
    return (slice(start, start + step) for start in range(0, rows, step))
