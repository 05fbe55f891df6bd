"""The likely causes of the first tensor that diverges, best first.

CAUSES is the table. Simple causes come before those with more free parameters, which could explain
more by chance: of equal scores, the first in the table wins. RERUNS run the program again, and are
only tried where no cause of VALUES is sure.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from npumake.debug.dumps.bit_causes import absolute, overflow, stuck_bit, word_order
from npumake.debug.dumps.context_causes import other_input, stale, unlike_the_rest
from npumake.debug.dumps.curve_causes import curve
from npumake.debug.dumps.evidence import Evidence, LikelyCause
from npumake.debug.dumps.fitted_causes import fitted_operands, fitted_weights
from npumake.debug.dumps.moved_causes import lines_moved, moved_runs
from npumake.debug.dumps.node_causes import changed_node, other_sample
from npumake.debug.dumps.order_causes import channel_order, layout, stride
from npumake.debug.dumps.part_causes import (
    border,
    repeated_part,
    stale_part,
    unknown_part,
    unwritten_lines,
    unwritten_part,
)
from npumake.debug.dumps.space_causes import offset, orientation, shifted, zoomed
from npumake.debug.dumps.sum_causes import (
    sum_grid,
    sum_offset,
    sum_overflow,
    sum_rounding,
    sum_scale,
    sum_sign,
)
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
from npumake.debug.dumps.width_causes import (
    byte_order,
    high_byte,
    low_byte,
    narrow,
    not_written,
    width,
)

Cause = Callable[[Evidence], LikelyCause | None]
VALUES: tuple[Cause, ...] = (
    unlike_the_rest,
    rounding,
    not_written,
    byte_order,
    described_grid,
    sign,
    zero_point,
    half_range,
    layout,
    orientation,
    channel_order,
    word_order,
    stride,
    narrow,
    stale,
    width,
    high_byte,
    low_byte,
    stuck_bit,
    clipped,
    activation,
    scale,
    absolute,
    other_grid,
    unwritten_part,
    unwritten_lines,
    overflow,
    bias,
    channel_scales,
    shifted,
    offset,
    repeated_part,
    sum_scale,
    sum_rounding,
    sum_sign,
    sum_offset,
    sum_overflow,
    sum_grid,
    lines_moved,
    moved_runs,
    curve,
    some_channels,
)
RERUNS: tuple[Cause, ...] = (
    other_input,
    other_sample,
    changed_node,
    fitted_operands,
    zoomed,
    stale_part,
    fitted_weights,
    border,
)
CAUSES: tuple[Cause, ...] = (*VALUES, *RERUNS, unknown_part)
MIN_SCORE = 0.6  # lower scores are not reported
SCORE_DIGITS = 2  # scores are compared at this precision
SURE_SCORE = 0.98  # of a cause of VALUES, where the program does not run again


def causes(evidence: Evidence) -> tuple[LikelyCause, ...]:
    """The causes with at least MIN_SCORE, likeliest first."""
    with np.errstate(all="ignore"):
        likely = _scored(VALUES, evidence)
        if not any(cause.score >= SURE_SCORE for cause in likely):
            likely += _scored(RERUNS, evidence)
        if not likely:
            likely = _scored((unknown_part,), evidence)
    return tuple(sorted(likely, key=lambda cause: -round(cause.score, SCORE_DIGITS)))


def _scored(table: tuple[Cause, ...], evidence: Evidence) -> list[LikelyCause]:
    candidates = (cause(evidence) for cause in table)
    return [cause for cause in candidates if cause is not None and cause.score >= MIN_SCORE]
