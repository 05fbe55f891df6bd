"""PEAKS: the memory that a stage needs before it was ever measured, for a cluster.

Fitted to the peaks of one process for each node (benchmarks/cluster_stages.py), rounded up. The
activations of a model are not known from its file; the factor covers those of small models on
pictures of 320 x 320. Converters and compilers that run as programs of their own are not counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class PeakRule(NamedTuple):
    """A process needs `mib` and `per_model_byte` times the bytes of the stage's models."""

    mib: int
    per_model_byte: int


OTHER_PEAK = PeakRule(128, 4)
PEAKS: Mapping[str, PeakRule] = {
    "statistics": PeakRule(192, 16),
    "recipe": PeakRule(256, 32),
    "calibrated": PeakRule(256, 16),
    "compiled_check": PeakRule(192, 16),
    "comparison": PeakRule(256, 16),
    "trial": PeakRule(256, 16),  # of npumake precision
}
