"""Exact convolution of integers in one, two or three spatial dimensions.

    y[n, o, i] = sum over c, t of  w[o, c, t] * x[n, c, s * i + d * t - p]

x and w are without zero points, so the padding is 0. With d * t = s * a + r, the padded x is split
into phases x[s * j + r], one per remainder r, and flattened:

    y[n, o, i] = sum over c, t of  w[o, c, t] * phase[r(t)][n, c, i + a(t)]

So a tap is one slice of memory: i runs over rows of the phase's length, and columns beyond the
width of y are dropped. The slices are the columns of a matrix (im2col), with one product per group.
The transpose scatters instead of gathering.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from npumake.kernels.arrays import Ints
from npumake.kernels.matmul import exact_float
from npumake.kernels.window import extent, fits, padded, windows

BLOCK_BYTES = 1 << 20  # of im2col at a time, to stay in the cache

Index: TypeAlias = tuple[Any, ...]
Array: TypeAlias = npt.NDArray[Any]  # float32 or float64 with exact integers


class _Taps(NamedTuple):
    """Tap t of sample n is phases[remainder[t]][n, :, first[t] :], cut to `span`."""

    phases: dict[tuple[int, ...], Array]  # (N, C, flat) each
    remainder: list[tuple[int, ...]]
    first: list[int]
    span: int
    out: list[int]
    rows: list[int]  # the spatial shape of a phase

    def of(self, tap: int, sample: int) -> Array:
        first = self.first[tap]
        return self.phases[self.remainder[tap]][sample, :, first : first + self.span]


def conv(
    x: Ints,
    weight: Ints,
    pads: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    group: int,
) -> Array:
    """ONNX Conv without bias: x (N, C, *spatial), weight (O, C / group, *kernel) -> (N, O, *out).

    The result is float32 or float64, whichever is exact. Raises ValueError if the kernel does not
    fit, TooWideError if a sum could exceed 2**53.
    """
    outputs, depth, *kernel = weight.shape
    exact = exact_float(x, weight, tuple(range(1, weight.ndim)))
    taps = _taps(padded(x, pads, 0, exact), kernel, strides, dilations)
    weights = weight.reshape(group, outputs // group, depth, -1).astype(exact)
    whole = (taps.out[0], *taps.rows[1:])
    result = np.empty((len(x), group, outputs // group, prod(whole)), exact)
    for sample, into in enumerate(result):
        parts = [taps.of(tap, sample) for tap in range(len(taps.first))]
        _multiply(parts, weights, into[..., : taps.span])
    inside = (slice(n) for n in taps.out)
    cropped: Index = (..., *inside)
    return result.reshape(len(x), outputs, *whole)[cropped]


def _taps(
    x: Array, kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
) -> _Taps:
    """The taps of the padded x (N, C, *spatial), extended to whole strides."""
    spatial = x.shape[2:]
    out = [fits(*axis) for axis in zip(spatial, kernel, strides, dilations, strict=True)]
    rows = [-(-n // s) for n, s in zip(spatial, strides, strict=True)]
    steps = [prod(rows[axis + 1 :]) for axis in range(len(rows))]
    ends = [m * s - n for m, s, n in zip(rows, strides, spatial, strict=True)]
    if any(ends):
        x = np.pad(x, ((0, 0), (0, 0), *((0, end) for end in ends)))
    remainder, first = [], []
    for tap in np.ndindex(*kernel):
        reach = [divmod(t * d, s) for t, d, s in zip(tap, dilations, strides, strict=True)]
        remainder.append(tuple(r for _, r in reach))
        first.append(sum(a * step for (a, _), step in zip(reach, steps, strict=True)))
    phases = {}
    for phase in dict.fromkeys(remainder):
        cut = (slice(r, None, s) for r, s in zip(phase, strides, strict=True))
        at: Index = (..., *cut)
        phases[phase] = x[at].reshape(*x.shape[:2], -1)
    span = sum((n - 1) * step for n, step in zip(out, steps, strict=True)) + 1
    return _Taps(phases, remainder, first, span, out, rows)


def conv_transpose(
    x: Ints,
    weight: Ints,
    pads: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    group: int,
) -> Array:
    """ONNX ConvTranspose without bias: x (N, C, *in), weight (C, O / group, *kernel).

    out = stride * (in - 1) + dilation * (kernel - 1) + 1 - begin - end. Subtract an
    `output_padding` from the end pads, which may become negative. Raises TooWideError if a sum
    could exceed 2**53.
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
    cropped: Index = (..., *inside)
    result = np.zeros((len(x), group, outputs, *size), exact)
    for sample, into in zip(x.astype(exact), result, strict=True):
        canvas = np.zeros((group, outputs, *whole), exact)
        grouped = sample.reshape(group, channels // group, *inputs)
        _scatter(grouped, rows, windows(canvas, kernel, strides, dilations))
        part = canvas[cropped]
        into[tuple(slice(n) for n in part.shape)] = part
    return result.reshape(len(x), group * outputs, *size)


def _multiply(taps: Sequence[Array], weights: Array, into: Array) -> None:
    """One matrix product per group: a tap (C, span), weights (G, O, C, T), into (G, O, span)."""
    group, outputs, depth, count = weights.shape
    matrix = weights.reshape(group, outputs, -1)
    split = [tap.reshape(group, depth, -1) for tap in taps]
    if count == 1:
        np.matmul(matrix, split[0], out=into)
        return
    for block in _blocks(into.shape[-1], count * taps[0].nbytes // into.shape[-1]):
        columns = np.stack([tap[..., block] for tap in split], axis=2)
        into[..., block] = matrix @ columns.reshape(group, depth * count, -1)


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
