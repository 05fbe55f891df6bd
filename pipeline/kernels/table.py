"""Functions of one quantized value as tables, and the softmax made from one.

With d = max(q) - q >= 0 along the axis and the input scale S,

    softmax = exp(-S * d) / sum exp(-S * d)

and the exponentials are a table of integers in units of 2**-24, so all that follows is exact.
"""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Context, Decimal

import numpy as np
import numpy.typing as npt

from pipeline.kernels.arrays import Int64, Ints

EXP_BITS = 24
SOFTMAX_BITS = 30


def lookup(q: Ints, table: npt.NDArray[np.int32], low: int) -> npt.NDArray[np.int32]:
    """table[q - low] elementwise; the table has an entry for every value of the grid of `q`."""
    return np.take(table, np.subtract(q, low, dtype=np.intp))


def exp_table(scale: float, levels: int = 256) -> Int64:
    """round(2**24 * exp(-scale * d)) for d = 0 .. levels - 1, half to even.

    Computed in decimal arithmetic, because the exp of two C libraries may differ in the last bit.
    Raises ValueError if the scale is not positive.
    """
    if not scale > 0:
        raise ValueError(f"a scale is positive, not {scale}")
    context = Context(prec=20)
    table = np.zeros(levels, np.int64)
    for d in range(min(levels, int(18 / scale) + 1)):  # 2**24 * exp(-18) < 1/2
        power = context.exp(context.multiply(Decimal(-scale), d))
        table[d] = int((power * (1 << EXP_BITS)).to_integral_value(ROUND_HALF_EVEN))
    return table


def softmax(q: Ints, table: Int64, axis: int) -> Int64:
    """Probabilities along `axis` in units of 2**-30, rounded to nearest; rescale them to a grid.

    `table` is `exp_table(input scale, levels)` with max(q) - q < levels. A numerator is below
    2**55 and a sum below 2**24 times the size of the axis: int64 holds them for any axis.
    """
    largest = q.max(axis=axis, keepdims=True)
    powers = np.take(table, np.subtract(largest, q, dtype=np.intp))
    total = powers.sum(axis=axis, keepdims=True)
    return ((powers << SOFTMAX_BITS) + total // 2) // total
