"""Weights as a compiler may have misread them: their order, their sign, and their width."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations, product

import numpy as np

ANY_ORDER = ((0, 2, 3, 1), (0, 3, 1, 2), (1, 0, 2, 3), (0, 1, 3, 2))  # of a weight's memory


def other_weights(weight: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """What node changes say of the weights, and the weights."""
    if weight.ndim == 4:
        yield (
            "rotated by 180 degrees, as a convolution and a correlation differ",
            weight[:, :, ::-1, ::-1],
        )
        yield "with height and width exchanged", weight.swapaxes(2, 3)
        yield "mirrored left to right", weight[..., ::-1]
        yield "mirrored top to bottom", weight[:, :, ::-1]
    yield "with the input channels reversed", weight[:, ::-1]
    yield "with the output channels reversed", weight[::-1]
    for axis, by in product(range(weight.ndim), (1, -1)):
        if weight.shape[axis] > 1:
            yield f"{by:+d} places away along axis {axis}", np.roll(weight, by, axis)
    for order in permutations(range(weight.ndim)) if weight.ndim < 4 else ANY_ORDER:
        moved = np.ascontiguousarray(weight.transpose(order)).reshape(weight.shape)
        yield f"read in the memory order {order}", moved
    if weight.dtype.kind in "iu" and weight.dtype.itemsize == 1:
        yield "read as unsigned, 128 away", (weight.astype(np.int16) ^ -128).astype(weight.dtype)
        for bits in (4, 2, 3, 5, 6, 7):
            yield f"in {bits} bits, truncated", weight >> (8 - bits) << (8 - bits)
        yield "in 4 bits, rounded", np.clip(np.rint(weight / 16), -8, 7) * 16
    yield (
        "negated",
        np.clip(-weight.astype(np.int64), -128, 127) if weight.itemsize == 1 else -weight,
    )
