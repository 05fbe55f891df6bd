"""Tables of functions of one quantized value, and the softmax from one.

With d = max(q) - q >= 0 along the axis and the input scale S,

    softmax = exp(-S * d) / sum exp(-S * d)

The exponentials are a table of integers in units of 2**-32, so everything after it is exact.
"""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Context, Decimal

import numpy as np
import numpy.typing as npt

from npumake.kernels.arrays import Int64, Ints

EXP_BITS = 32
SOFTMAX_BITS = 30


def lookup(q: Ints, table: npt.NDArray[np.int32], low: int) -> npt.NDArray[np.int32]:
    """table[q - low] elementwise; the table covers every code of `q`."""
    return np.take(table, np.subtract(q, low, dtype=np.intp))


def exp_table(scale: float, levels: int = 256) -> Int64:
    """round(2**32 * exp(-scale * d)) for d = 0 .. levels - 1, half to even.

    Computed in decimal arithmetic, since the exp of C libraries may differ in the last bit: power
    by power, with enough digits for 65536 products. Raises ValueError if the scale is not positive.
    """
    if not scale > 0:
        raise ValueError(f"a scale is positive, not {scale}")
    context = Context(prec=40)
    ratio, power = context.exp(Decimal(-scale)), Decimal(1 << EXP_BITS)
    table = np.zeros(levels, np.int64)
    for d in range(min(levels, int(24 / scale) + 1)):  # 2**32 * exp(-24) < 1/2
        table[d] = int(power.to_integral_value(ROUND_HALF_EVEN))
        power = context.multiply(power, ratio)
    return table


def softmax(q: Ints, table: Int64, axis: int) -> Int64:
    """Probabilities along `axis` in units of 2**-30, rounded to nearest, before rescaling to a
    grid.

    `table` is `exp_table(input scale, levels)` with max(q) - q < levels. A numerator is at most
    2**62 and a sum 2**32 times the size of the axis: int64 suffices up to 2**30 elements.
    """
    largest = q.max(axis=axis, keepdims=True)
    powers = np.take(table, np.subtract(largest, q, dtype=np.intp))
    total = powers.sum(axis=axis, keepdims=True)
    return ((powers << SOFTMAX_BITS) + total // 2) // total
