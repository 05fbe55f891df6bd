"""Kernels that move codes or select among them.

Codes are rescaled from the input grid to the output grid, and copied if both are equal. Rescaling
keeps the order of codes, so the maximum of the rescaled codes is the rescaled maximum: Max and Min
add no rounding to the requantization.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce

import numpy as np

from npumake.engine.call import Call, steps_of
from npumake.kernels.rounding import FixedPoint, rescale

SELECTED = {"maximum": np.maximum, "minimum": np.minimum}


def concat(call: Call, *read: np.ndarray) -> np.ndarray:
    parts = list(_on_one_grid(call, read))
    return call.clamped(np.concatenate(parts, axis=call.attribute("axis")))


def selected(call: Call, *read: np.ndarray) -> np.ndarray:
    """The maximum or minimum of any number of broadcast tensors."""
    return call.clamped(reduce(SELECTED[call.step.op], _on_one_grid(call, read)))


def _on_one_grid(call: Call, read: tuple[np.ndarray, ...]) -> Iterator[np.ndarray]:
    """Every operand in steps of the output grid, without its zero point."""
    for index, (q, grid) in enumerate(zip(read, call.inputs, strict=True)):
        factor = FixedPoint(call.constant("mantissa")[index], call.constant("shift")[index])
        yield rescale(steps_of(q, grid), factor, call.attribute("rounding"))


def reshape(call: Call, q: np.ndarray) -> np.ndarray:
    return _moved(call, q.reshape(call.attribute("shape")))


def transpose(call: Call, q: np.ndarray) -> np.ndarray:
    return _moved(call, q.transpose(call.attribute("perm")))


def gather(call: Call, q: np.ndarray) -> np.ndarray:
    return _moved(call, np.take(q, call.constant("indices"), axis=call.attribute("axis")))


def take(call: Call, q: np.ndarray) -> np.ndarray:
    """Elements by index into the flattened tensor; `indices` has the output's shape."""
    return _moved(call, q.reshape(-1)[call.constant("indices")])


def sliced(call: Call, q: np.ndarray) -> np.ndarray:
    index = [slice(None)] * q.ndim
    for axis, *span in call.attribute("spans"):
        index[axis] = slice(*span)
    return _moved(call, q[tuple(index)])


def tile(call: Call, q: np.ndarray) -> np.ndarray:
    """Repeats each axis up to the output's shape; new axes come first."""
    after = call.output.shape
    before = (1,) * (len(after) - q.ndim) + q.shape
    if any(m % n for n, m in zip(before, after, strict=True)):
        raise ValueError(f"{list(q.shape)} does not repeat to {list(after)}")
    repeats = [m // n for n, m in zip(before, after, strict=True)]
    return _moved(call, np.tile(q, repeats))


def depth_to_space(call: Call, q: np.ndarray) -> np.ndarray:
    """(N, C, H, W) to (N, C / b**2, H * b, W * b). In DCR a channel is (row, column, channel of the
    output), in CRD (channel of the output, row, column)."""
    (n, c, h, w), b = q.shape, call.attribute("blocksize")
    depth = c // b**2
    if call.attribute("mode") == "DCR":
        blocks = q.reshape(n, b, b, depth, h, w).transpose(0, 3, 4, 1, 5, 2)
    else:
        blocks = q.reshape(n, depth, b, b, h, w).transpose(0, 1, 4, 2, 5, 3)
    return _moved(call, blocks.reshape(n, depth, h * b, w * b))


def space_to_depth(call: Call, q: np.ndarray) -> np.ndarray:
    """(N, C, H, W) to (N, C * b**2, H / b, W / b); a channel is (row, column, channel)."""
    (n, c, h, w), b = q.shape, call.attribute("blocksize")
    blocks = q.reshape(n, c, h // b, b, w // b, b).transpose(0, 3, 5, 1, 2, 4)
    return _moved(call, blocks.reshape(n, c * b**2, h // b, w // b))


def _moved(call: Call, q: np.ndarray) -> np.ndarray:
    return call.finished(steps_of(q, call.inputs[0]))
