"""PEAKS: the memory that a stage needs before it was ever measured, for a cluster.

Rounded up from the peaks of a process for each node: MobileNet v1 0.25, SqueezeNet 1.1 and YOLOX of
2 to 5 MB, and six fully connected layers of 100 MB. `mib` covers the interpreter, the libraries and
the activations for pictures of 224 x 224, which the size of a model does not tell. Converters and
compilers that run as programs of their own are not counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class PeakRule(NamedTuple):
    """A process needs `mib` and `per_model_byte` times the bytes of the stage's models."""

    mib: int
    per_model_byte: int


OTHER_PEAK = PeakRule(128, 10)
PEAKS: Mapping[str, PeakRule] = {
    "statistics": PeakRule(192, 4),
    "recipe": PeakRule(288, 16),
    "calibrated": PeakRule(192, 8),
    "compiled_check": PeakRule(224, 16),
    "comparison": PeakRule(288, 16),
    "trial": PeakRule(288, 16),  # of npumake precision
}
