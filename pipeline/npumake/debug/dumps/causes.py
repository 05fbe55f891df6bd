"""The likely causes of the first tensor that diverges, best first.

CAUSES is the table. Simple causes come before those with more free parameters, which could explain
more by chance: of equal scores, the first in the table wins.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from npumake.debug.dumps.context_causes import other_input, stale, unlike_the_rest
from npumake.debug.dumps.evidence import Evidence, LikelyCause
from npumake.debug.dumps.order_causes import channel_order, layout, shifted, stride, turned
from npumake.debug.dumps.value_causes import (
    activation,
    bias,
    channel_scales,
    clipped,
    described_grid,
    half_range,
    other_grid,
    rounding,
    scale,
    sign,
    some_channels,
    zero_point,
)
from npumake.debug.dumps.width_causes import byte_order, high_byte, low_byte, not_written, width

CAUSES: tuple[Callable[[Evidence], LikelyCause | None], ...] = (
    unlike_the_rest,
    rounding,
    not_written,
    byte_order,
    described_grid,
    sign,
    zero_point,
    half_range,
    layout,
    turned,
    channel_order,
    stride,
    stale,
    width,
    high_byte,
    low_byte,
    clipped,
    activation,
    scale,
    other_input,
    other_grid,
    bias,
    channel_scales,
    shifted,
    some_channels,
)
MIN_SCORE = 0.6  # lower scores are not reported
SCORE_DIGITS = 2  # scores are compared at this precision


def causes(evidence: Evidence) -> tuple[LikelyCause, ...]:
    """The causes with at least MIN_SCORE, likeliest first."""
    with np.errstate(all="ignore"):
        candidates = [finding for cause in CAUSES if (finding := cause(evidence)) is not None]
    likely = [finding for finding in candidates if finding.score >= MIN_SCORE]
    return tuple(sorted(likely, key=lambda finding: -round(finding.score, SCORE_DIGITS)))
