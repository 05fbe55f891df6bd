"""Resizes images axis by axis, with elementwise sums only: equal results on every machine.

Output pixel i of n, from m input pixels, lies at x = (i + 1/2) * m / n - 1/2. Its value is

    spline of order k    sum over j of c[j] * B_k(x - j)    k + 1 terms; 0 is nearest, 1 linear
    cubic (a = -3/4)     sum over j of p[j] * h(x - j)      4 terms: OpenCV's INTER_CUBIC
    area                 the mean of the pixels from i * m / n to (i + 1) * m / n: its INTER_AREA

B_k is the centered B-spline: B_0 = 1 on [-1/2, 1/2), and with r = (k + 1) / 2

    B_k(t) = ((r + t) * B_{k-1}(t + 1/2) + (r - t) * B_{k-1}(t - 1/2)) / k

From order 2 on, c is p filtered so that the spline passes through the pixels (Unser, Aldroubi,
Eden: B-spline signal processing, IEEE Trans. SP 41, 1993). Beyond the border an image repeats its
edge (OpenCV), is mirrored about its edge pixel (scikit-image), or is zero.

Before it shrinks by f = m / n, scikit-image smooths with a Gaussian of sigma (f - 1) / 2, cut at
4 sigma; OpenCV cuts at 3.
"""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import Literal, NamedTuple

import numpy as np

from npumake.errors import ProjectError

MAX_PIXELS = 1 << 26  # of a resized image
Border = Literal["edge", "mirror", "zero"]
# Poles of the filter from pixels to spline coefficients, by order.
POLES: dict[int, tuple[float, ...]] = {
    0: (),
    1: (),
    2: (sqrt(8) - 3,),
    3: (sqrt(3) - 2,),
    4: (
        sqrt(664 - sqrt(438976)) + sqrt(304) - 19,
        sqrt(664 + sqrt(438976)) - sqrt(304) - 19,
    ),
    5: (
        sqrt(67.5 - sqrt(4436.25)) + sqrt(26.25) - 6.5,
        sqrt(67.5 + sqrt(4436.25)) - sqrt(26.25) - 6.5,
    ),
}


class ResamplingTaps(NamedTuple):
    """Output i is the sum over k of weight[i, k] * pixel[places[i, k]]; both (out, terms)."""

    places: np.ndarray
    weight: np.ndarray


def linear(image: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """(H, W, C) → (*size, C) as OpenCV's INTER_LINEAR, in float32."""
    return _resized(image, size, lambda x, m: taps(x, m, 1, "edge"))


def cubic(image: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """(H, W, C) → (*size, C) as OpenCV's INTER_CUBIC, in float32."""
    return _resized(image, size, _cubic_taps)


def area(image: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """(H, W, C) → (*size, C) as OpenCV's INTER_AREA, in float32.

    If one side grows, both use INTER_AREA's variant of linear interpolation.
    """
    shrinks = image.shape[0] >= size[0] and image.shape[1] >= size[1]
    return _resized(image, size, _area_taps if shrinks else _growing_taps)


def smoothed(image: np.ndarray, sigma: float) -> np.ndarray:
    """(H, W, C) → (H, W, C) as OpenCV's GaussianBlur of 8-bit images, in float32."""
    radius = (round(6 * sigma + 1) | 1) // 2
    for axis in (0, 1):
        image = along(image, axis, _gaussian_taps(image.shape[axis], sigma, radius))
    return image


def spline(image: np.ndarray, size: tuple[int, int], order: int) -> np.ndarray:
    """(H, W, C) → (*size, C) as scikit-image's resize: smoothed, and clipped to its range."""
    low, high = image.min(), image.max()
    for axis in (0, 1):
        factor = image.shape[axis] / size[axis]
        if order and factor > 1:
            sigma = (factor - 1) / 2
            kernel = _gaussian_taps(image.shape[axis], sigma, int(4 * sigma + 0.5))
            image = along(image, axis, kernel)
        for pole in POLES[order]:
            image = _filtered(image, axis, pole)
    image = _resized(image, size, lambda x, m: taps(x, m, order, "mirror"))
    return np.clip(image, low, high)


def along(image: np.ndarray, axis: int, through: ResamplingTaps) -> np.ndarray:
    """`image` resampled along `axis` by the taps, in float32."""
    spread = [-1 if n == axis else 1 for n in range(image.ndim)]
    total = np.zeros((), np.float32)
    for index, weight in zip(through.places.T, through.weight.T, strict=True):
        weight = weight.astype(np.float32).reshape(spread)
        part = np.multiply(np.take(image, index, axis), weight, dtype=np.float32)
        total = part if total.ndim == 0 else np.add(total, part, out=total)
    return total


def taps(x: np.ndarray, size: int, order: int, border: Border) -> ResamplingTaps:
    """The taps of the spline of `order` at the coordinates x (out,), for `size` pixels."""
    first = np.floor(x + (0.0 if order % 2 else 0.5)).astype(np.int64) - order // 2
    index = first[:, None] + np.arange(order + 1)
    weight = _b_spline(x[:, None] - index, order)
    return _within(ResamplingTaps(index, weight), size, border)


def refuse_large(size: tuple[int, int]) -> None:
    if size[0] * size[1] > MAX_PIXELS:
        raise ProjectError(f"an image resized to {size[0]} x {size[1]} is too large")


def _resized(
    image: np.ndarray, size: tuple[int, int], through: Callable[[np.ndarray, int], ResamplingTaps]
) -> np.ndarray:
    refuse_large(size)
    for axis in (0, 1):
        m, n = image.shape[axis], size[axis]
        image = along(image, axis, through((np.arange(n) + 0.5) * (m / n) - 0.5, m))
    return image


def _within(through: ResamplingTaps, size: int, border: Border) -> ResamplingTaps:
    index, weight = through
    if border == "zero":
        weight = np.where((index >= 0) & (index < size), weight, 0.0)
    if border == "mirror":
        period = max(2 * (size - 1), 1)
        index = np.minimum(index % period, period - index % period)
    return ResamplingTaps(np.clip(index, 0, size - 1), weight)


def _b_spline(t: np.ndarray, order: int) -> np.ndarray:
    if order == 0:
        return ((t >= -0.5) & (t < 0.5)).astype(np.float64)
    r = (order + 1) / 2
    left = (r + t) * _b_spline(t + 0.5, order - 1)
    return (left + (r - t) * _b_spline(t - 0.5, order - 1)) / order


def _cubic_taps(x: np.ndarray, size: int) -> ResamplingTaps:
    index = np.floor(x).astype(np.int64)[:, None] + np.arange(-1, 3)
    t, a = np.abs(x[:, None] - index), -0.75
    near = ((a + 2) * t - (a + 3)) * t * t + 1
    far = a * (((t - 5) * t + 8) * t - 4)
    return _within(ResamplingTaps(index, np.where(t <= 1, near, far)), size, "edge")


def _area_taps(x: np.ndarray, size: int) -> ResamplingTaps:
    f = size / len(x)
    low = (np.arange(len(x)) * f)[:, None]
    index = np.floor(low).astype(np.int64) + np.arange(int(np.ceil(f)) + 1)
    covered = np.minimum(index + 1, low + f) - np.maximum(index, low)
    return _within(ResamplingTaps(index, np.clip(covered, 0, None) / f), size, "edge")


def _growing_taps(x: np.ndarray, size: int) -> ResamplingTaps:
    f, i = size / len(x), np.arange(len(x))
    index = np.floor(i * f).astype(np.int64)
    far = np.clip((i + 1) - (index + 1) / f, 0, None)
    far = (far - np.floor(far))[:, None]
    return _within(
        ResamplingTaps(index[:, None] + np.arange(2), np.hstack([1 - far, far])), size, "edge"
    )


def _gaussian_taps(size: int, sigma: float, radius: int) -> ResamplingTaps:
    offsets = np.arange(-radius, radius + 1)
    weight = np.exp(-0.5 * np.square(offsets / sigma))
    weight = np.broadcast_to(weight / weight.sum(), (size, len(offsets)))
    return _within(ResamplingTaps(np.arange(size)[:, None] + offsets, weight), size, "mirror")


def _filtered(image: np.ndarray, axis: int, pole: float) -> np.ndarray:
    """One causal and one anticausal pass of the recursive filter, mirrored at both ends."""
    c = np.moveaxis(image.astype(np.float32), axis, 0).copy()
    n = len(c)
    if n == 1:
        return np.moveaxis(c, 0, axis)
    reach = np.arange(2 * n - 2)  # one whole period of the mirrored row
    weight = pole**reach / (1 - pole ** (2 * n - 2))
    mirrored = np.minimum(reach, 2 * n - 2 - reach)
    c *= (1 - pole) * (1 - 1 / pole)
    c[0] = along(c, 0, ResamplingTaps(mirrored[None], weight[None]))[0]
    for i in range(1, n):
        c[i] += pole * c[i - 1]
    c[n - 1] = (pole * c[n - 2] + c[n - 1]) * pole / (pole * pole - 1)
    for i in range(n - 2, -1, -1):
        c[i] = pole * (c[i + 1] - c[i])
    return np.moveaxis(c, 0, axis)
