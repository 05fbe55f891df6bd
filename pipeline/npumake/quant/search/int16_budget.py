"""int16 budget: how much of a model a recipe may put in int16, as a share of multiply-accumulates.

The project's own types count and are never taken back; what a recipe adds stays within the limit,
or within the share of the project's types where that is larger. int16 that no layer reads, such as
the arithmetic that decodes a box, costs no multiply-accumulates and fits any limit but 0, which
means 8 bits alone.

Qualcomm's published mixes put a tenth of the layers in int16 and keep 98.3 to 99.1 % of a
detector's accuracy, where 8 bits keep 80 to 94 %: hence BEST_LIMIT.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence

from npumake.project.sections import Calibration, Quantization

BEST_LIMIT = 0.1  # of `recipe: best`
SENSITIVE_LIMIT = 0.5  # of `widen_sensitive: true` where no limit is set


def int16_limit(quantization: Quantization, calibration: Calibration) -> float | None:
    """The largest share for the project; None without a limit."""
    if quantization.most_int16 is not None:
        return quantization.most_int16
    return BEST_LIMIT if calibration.recipe == "best" else None


def affordable(
    names: Sequence[str], share_of: Callable[[Sequence[str]], float], limit: float | None
) -> tuple[str, ...]:
    """Those of the names, taken in this order, whose share is within the limit together.

    `share_of` gives the share of the model with these names in int16, which more names never lower.
    """
    if limit is None or not names:
        return tuple(names)
    if limit == 0.0:
        return ()
    largest = max(limit, share_of(()))

    def fits(these: Sequence[str]) -> bool:
        return share_of(these) <= largest

    if fits(names):
        return tuple(names)
    chosen: list[str] = []
    left = list(names)
    while left:
        count = _fitting(left, chosen, fits)
        chosen += left[:count]
        left = left[count + 1 :]
    return tuple(chosen)


def _fitting(
    left: Sequence[str], chosen: Sequence[str], fits: Callable[[Sequence[str]], bool]
) -> int:
    """How many of `left` fit beside the chosen, all of fewer: found by steps that double, because
    a share takes a walk through the model."""

    def fit(count: int) -> bool:
        return fits([*chosen, *left[:count]])

    step = 1
    while step <= len(left) and fit(step):
        step *= 2
    between = range(step // 2 + 1, min(step, len(left) + 1))
    return step // 2 + bisect_left(between, True, key=lambda count: not fit(count))
