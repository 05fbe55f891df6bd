"""Share: what one thread has seen of the tensors: extremes, and values that wait to be counted.

Values of many samples are counted together. They wait in one array that is made once: memory that
is asked for anew costs more, page by page, than what is written to it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from npumake.quant.calibration.buffer_layout import Buffer, Layout
from npumake.quant.calibration.minmax_observer import MinMaxObserver
from npumake.quant.calibration.subsampling import ENOUGH

# Values that wait in all threads, unless those of a sample in each are more.
HELD = 32 * ENOUGH  # of a tensor: twice as much memory as its bins
ROOM = 1 << 23  # of all tensors of a layout: 32 MB

Rows = npt.NDArray[np.float32]  # (samples, values)


class SampledPlaces:
    """The elements of a sample that are counted, `enough` of each tensor or somewhat more, and of
    how many samples each of so many threads counts them together."""

    def __init__(self, layout: Layout, enough: int, threads: int) -> None:
        elements = layout.counted(enough)
        ends = np.cumsum([len(places) for places in elements]).tolist()
        self.places = np.concatenate(elements)
        self.tensors = [slice(start, end) for start, end in zip([0, *ends], ends, strict=False)]
        # Each element counts for as many as it stands for.
        self.weights = [
            round(math.prod(view.shape) / len(places))
            for view, places in zip(layout.views.values(), elements, strict=True)
        ]
        self.samples = max(1, min(HELD // enough, ROOM // len(self.places)) // threads)


class ObserverBuffer:
    """Filled sample by sample. What waits is all `picked` alike."""

    def __init__(self, layout: Layout, ways: Sequence[SampledPlaces]) -> None:
        self.reach = MinMaxObserver(layout)
        self.picked = ways[0]
        self._room = np.empty(max(way.samples * len(way.places) for way in ways), np.float32)
        self._held = 0

    @property
    def is_empty(self) -> bool:
        return not self._held

    @property
    def is_full(self) -> bool:
        return self._held == self.picked.samples

    def hold(self, buffer: Buffer) -> None:
        """What is picked of a sample."""
        # To `wrap` what lies outside, and nothing does, is how NumPy writes to `out` at once.
        row = self._rows(self._held, self._held + 1)[0]
        np.take(buffer, self.picked.places, out=row, mode="wrap")
        self._held += 1

    def let_go(self) -> Rows:
        """What waits, until the next is held."""
        rows, self._held = self._held, 0
        return self._rows(0, rows)

    def _rows(self, first: int, end: int) -> Rows:
        each = len(self.picked.places)
        return self._room[first * each : end * each].reshape(end - first, each)
