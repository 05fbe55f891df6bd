"""The likely cause of the first tensor that diverges: every cause tried, the best told first.

CAUSES is the table, the plainer cause before the one that could explain more by having more
numbers to choose: of equal scores the first in the table wins.
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
MIN_SCORE = 0.6  # the least score of a cause that is told
SCORE_DIGITS = 2  # of a score: what is nearer than that is equal


def causes(evidence: Evidence) -> tuple[LikelyCause, ...]:
    """Those that explain most of it, the likeliest first."""
    with np.errstate(all="ignore"):
        candidates = [finding for cause in CAUSES if (finding := cause(evidence)) is not None]
    likely = [finding for finding in candidates if finding.score >= MIN_SCORE]
    return tuple(sorted(likely, key=lambda finding: -round(finding.score, SCORE_DIGITS)))
