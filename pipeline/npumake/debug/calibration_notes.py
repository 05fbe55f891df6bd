"""Notes on a calibration: too few samples for its method, and outputs that its ranges clip.

The statistics hold the extremes of every output in every sample, so nothing is run again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from npumake.data.samples import Samples, made_up
from npumake.engine.grids import dequantizer, tensor_on_grid
from npumake.graph import Graph
from npumake.project.sections import Calibration
from npumake.quant.calibration.statistics import Statistics

# `max` needs one sample per extreme; a histogram's tail and a search on held-out samples need more.
SAMPLES_NEEDED: Mapping[str, int] = {
    "default": 16,
    "kl": 16,
    "max": 8,
    "max_percentile": 16,
    "mix": 16,
    "modelwise": 16,
    "moving_average": 16,
    "mse": 16,
    "output_mix": 16,
    "standard": 16,
}
SAMPLES_NEEDED_BY_BEST = 32
CUT_WIDTH = 0.25  # of the width of an output's range
CUT_SHARE = 0.25  # of the samples


def calibration_notes(
    quantized: Graph, statistics: Statistics, samples: Samples, calibration: Calibration
) -> tuple[str, ...]:
    """One line per finding."""
    if not len(samples) or made_up(samples):
        return ()
    notes = [*_few(len(samples), calibration), *_cut_outputs(quantized, statistics, samples.names)]
    return tuple(notes)


def _few(count: int, calibration: Calibration) -> Iterator[str]:
    method: str = calibration.method
    needed = SAMPLES_NEEDED.get(method, 0)
    if calibration.recipe == "best":
        method, needed = "recipe: best", SAMPLES_NEEDED_BY_BEST
    if count < needed:
        yield (
            f"{count} calibration sample{'s' * (count != 1)}; `{method}` needs {needed} or more: "
            "with fewer, its ranges depend on the choice of samples"
        )


def _cut_outputs(graph: Graph, statistics: Statistics, names: Sequence[str]) -> Iterator[str]:
    """Outputs that the float model exceeds far beyond their range in many samples."""
    for value in graph.outputs:
        maker, extremes = dequantizer(value), statistics.samples.get(str(value.name))
        if maker is None or maker.inputs[0] is None or extremes is None:
            continue
        grid = tensor_on_grid(maker, maker.inputs[0])
        limits, scale = np.iinfo(grid.dtype), grid.scale or 0.0
        low, high = (scale * (code - grid.zero_point) for code in (limits.min, limits.max))
        excess = np.maximum(low - extremes.low, extremes.high - high)
        cut = excess > CUT_WIDTH * (high - low)
        if cut.sum() >= max(1.0, CUT_SHARE * len(cut)):
            worst = int(np.argmax(excess))
            yield (
                f"output `{value.name}` saturates: its range is {low:.4g}..{high:.4g}, and "
                f"{int(cut.sum())} of {len(cut)} calibration samples go beyond it "
                f"({names[statistics.numbers[worst]]}: "
                f"{extremes.low[worst]:.4g}..{extremes.high[worst]:.4g})"
            )
