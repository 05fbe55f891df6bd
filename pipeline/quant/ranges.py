"""The range of each tensor: what was measured, saturated where the calibration's method says.

Nothing is taken off the answers of the model. A threshold weighs values by how often they occur,
and in an answer the rare large ones are what was asked for: the one probability among a thousand,
the few boxes among thousands that hold something. (Nor did the inventors of kl: their outputs are
float.)
"""

from __future__ import annotations

from typing import NamedTuple

from pipeline.graph import Graph
from pipeline.project.sections import Calibration
from pipeline.quant.observe import Statistics
from pipeline.quant.placement import answers
from pipeline.quant.thresholds import threshold


class Range(NamedTuple):
    low: float
    high: float


def ranges(graph: Graph, statistics: Statistics, calibration: Calibration) -> dict[str, Range]:
    """The range of every tensor in `statistics`, those of the float `graph`."""
    whole = answers(graph)
    found: dict[str, Range] = {}
    for name, measured in statistics.tensors.items():
        found[name] = Range(measured.low, measured.high)
        if name not in whole:
            top = threshold(measured, calibration)
            found[name] = Range(max(measured.low, -top), min(measured.high, top))
    return found
