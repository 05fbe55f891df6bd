"""comparison: how close every node stays to the float model, over all samples.

optimized_float in float · calibrated in float with Q/DQ · quantized in exact integers
"""

from __future__ import annotations

from pipeline.data.samples import Samples
from pipeline.debug.compare import Comparison, compare
from pipeline.graph import Graph
from pipeline.progress import track
from pipeline.targets.target import Target


def comparison(
    optimized_float: Graph, calibrated: Graph, quantized: Graph, samples: Samples, target: Target
) -> Comparison:
    feeds = track(samples, "comparison", len(samples))
    return compare(optimized_float, calibrated, quantized, feeds, target)
