"""A tensor as rows, one for each channel."""

from __future__ import annotations

import numpy as np

from npumake.debug.dumps.evidence import Evidence


def by_channel(values: np.ndarray, evidence: Evidence) -> np.ndarray:
    moved = np.moveaxis(np.atleast_1d(values), evidence.channel_axis, 0)
    return moved.reshape(len(moved), -1)


def from_channels(rows: np.ndarray, evidence: Evidence) -> np.ndarray:
    """The inverse of by_channel."""
    shape = evidence.computed.shape
    moved = [
        shape[evidence.channel_axis],
        *(n for a, n in enumerate(shape) if a != evidence.channel_axis),
    ]
    return np.moveaxis(rows.reshape(moved), 0, evidence.channel_axis)
