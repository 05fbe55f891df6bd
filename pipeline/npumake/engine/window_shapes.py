"""Output shapes of windowed kernels, and checks of pads, strides, dilations and weights.

Along one axis of size n with pads b and e, a window of k taps with dilation d and stride s gives

    (n + b + e - ((k - 1) * d + 1)) // s + 1

outputs, and its transpose  (n - 1) * s + (k - 1) * d + 1 - b - e.
"""

from __future__ import annotations

from npumake.engine.call import Call
from npumake.engine.checks import (
    MAX_ATTRIBUTE,
    Shape,
    bounded,
    constant,
    listed,
    refuse,
    refuse_unstorable,
    whole,
    wholes,
    within,
)
from npumake.kernels.window import extent


def convolved(call: Call) -> Shape:
    n, channels, *spatial = _image(call)
    outputs, depth, *kernel = _weight(call, len(spatial))
    group = whole(call, "group", 1)
    refuse(depth * group != channels or bool(outputs % group), f"{group} groups do not divide it")
    return n, outputs, *_windows(call, spatial, kernel)


def transposed_convolved(call: Call) -> Shape:
    """A negative end pad is output padding."""
    n, channels, *spatial = _image(call)
    inputs, outputs, *kernel = _weight(call, len(spatial))
    group, rank = whole(call, "group", 1), len(spatial)
    refuse(inputs != channels or bool(channels % group), f"{group} groups do not divide it")
    pads = wholes(call, "pads", 2 * rank, -MAX_ATTRIBUTE)
    strides, dilations = _steps(call, rank)
    refuse(min(pads[:rank]) < 0, f"a begin is padded by {min(pads[:rank])}")
    whole_sizes = [
        (size - 1) * s + extent(k, d)
        for size, k, s, d in zip(spatial, kernel, strides, dilations, strict=True)
    ]
    refuse_unstorable((n, group * outputs, *whole_sizes), "its accumulator")
    out_sizes = [
        size - b - e for size, b, e in zip(whole_sizes, pads[:rank], pads[rank:], strict=True)
    ]
    return n, group * outputs, *out_sizes


def pooled(call: Call) -> Shape:
    n, channels, *spatial = _image(call)
    rank = len(spatial)
    refuse(len(listed(call, "kernel")) != rank, f"its window does not have {rank} axes")
    return n, channels, *_windows(call, spatial, list(wholes(call, "kernel", rank, 1)))


def counted(call: Call) -> Shape:
    """An average pool with one divisor per output position."""
    out_shape = pooled(call)
    within("count", bounded(call, "count", 1, MAX_ATTRIBUTE).shape, out_shape)
    return out_shape


def _image(call: Call) -> Shape:
    shape = call.inputs[0].shape
    refuse(len(shape) < 3, f"{list(shape)} has no axis for a window")
    return shape


def _weight(call: Call, rank: int) -> Shape:
    weight = constant(call, "weight").shape
    refuse(len(weight) != rank + 2, f"a weight of {list(weight)} does not have {rank + 2} axes")
    return weight


def _steps(call: Call, rank: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Strides and dilations."""
    return wholes(call, "strides", rank, 1), wholes(call, "dilations", rank, 1)


def _windows(call: Call, spatial: list[int], kernel: list[int]) -> list[int]:
    rank = len(spatial)
    pads = wholes(call, "pads", 2 * rank)
    strides, dilations = _steps(call, rank)
    padded = [size + b + e for size, b, e in zip(spatial, pads[:rank], pads[rank:], strict=True)]
    refuse_unstorable((*call.inputs[0].shape[:2], *padded), "its padded input")
    reach = [extent(k, d) for k, d in zip(kernel, dilations, strict=True)]
    refuse(any(n < r for n, r in zip(padded, reach, strict=True)), f"{kernel} does not fit")
    return [(n - r) // s + 1 for n, r, s in zip(padded, reach, strides, strict=True)]
