"""int16 budget: how much of a model a recipe may put in int16, as a share of multiply-accumulates.

The project's own types count and are never taken back; what a recipe adds stays within the limit,
or within the share of the project's types where that is larger. int16 that no layer reads, such as
the arithmetic that decodes a box, costs no multiply-accumulates and fits any limit but 0, which
means 8 bits alone.

Qualcomm's published mixes put a tenth of the layers in int16 and keep 98.3 to 99.1 % of a
detector's accuracy, where 8 bits keep 80 to 94 %: hence BEST_LIMIT.
"""

from __future__ import annotations

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

    `share_of` gives the share of the model with these names in int16.
    """
    if limit is None or not names:
        return tuple(names)
    if limit == 0.0:
        return ()
    largest = max(limit, share_of(()))
    if share_of(names) <= largest:
        return tuple(names)
    chosen: tuple[str, ...] = ()
    for name in names:
        if share_of((*chosen, name)) <= largest:
            chosen = (*chosen, name)
    return chosen
