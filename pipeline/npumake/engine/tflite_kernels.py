"""The kernels of npumake.engine.tflite_rules."""

from __future__ import annotations

import numpy as np

from npumake.engine.call import Call, steps_of
from npumake.kernels import gemmlowp, interpolated, matmul, pool
from npumake.kernels.rounding import ROUNDED, FixedPoint, rescale


def add_twice(call: Call, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    factors = zip(call.constant("mantissa"), call.constant("shift"), strict=True)
    first, second, output = (FixedPoint(*factor) for factor in factors)
    a, b = (steps_of(q, grid) for q, grid in zip((left, right), call.inputs, strict=True))
    a, b = (
        rescale(side.astype(np.int64) << call.attribute("headroom"), factor, "twice")
        for side, factor in ((a, first), (b, second))
    )
    return call.clamped(rescale(a + call.attribute("sign") * b, output, "twice"))


def average_twice(call: Call, q: np.ndarray) -> np.ndarray:
    """The average of the codes; counted pads are zero points."""
    count = call.constant("count")
    above = pool.sum_pool(steps_of(q, call.inputs[0]), call.attribute("kernel"), *call.window())
    total = above + call.inputs[0].zero_point * count
    codes = np.sign(total) * ((np.abs(total) + count // 2) // count)
    return np.clip(codes, call.attribute("low"), call.attribute("high"))


def fully_connected(call: Call, q: np.ndarray) -> np.ndarray:
    total = matmul.matmul(steps_of(q, call.inputs[0]), call.constant("weight")) + call.bias
    return call.clamped(ROUNDED["half_away"](total * call.constant("factor")))


def prelu_twice(call: Call, q: np.ndarray) -> np.ndarray:
    steps = steps_of(q, call.inputs[0]).astype(np.int64)
    above, below = (
        FixedPoint(call.constant(f"{sign}mantissa"), call.constant(f"{sign}shift"))
        for sign in ("", "negative_")
    )
    leaked = rescale(steps * call.constant("slope"), below, "twice")
    return call.clamped(np.where(steps >= 0, rescale(steps, above, "twice"), leaked))


def softmax_twice(call: Call, q: np.ndarray) -> np.ndarray:
    softmax = interpolated.softmax if q.dtype == np.int16 else gemmlowp.softmax
    return softmax(q, float(call.inputs[0].scale or 0.0), call.attribute("axis"))


def resize_twice(call: Call, q: np.ndarray) -> np.ndarray:
    rows, columns = (
        tuple(call.constant(f"{role}_{axis}") for role in ("low", "high", "weight"))
        for axis in (2, 3)
    )
    return gemmlowp.linear(q, rows, columns)
