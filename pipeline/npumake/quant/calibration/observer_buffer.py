"""Observer buffer: one thread's extremes, and the values that wait to be counted.

Values of many samples are counted together. They wait in one array that is allocated once: fresh
memory costs more, page by page, than the write itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from npumake.quant.calibration.buffer_layout import Buffer, Layout
from npumake.quant.calibration.minmax_observer import MinMaxObserver
from npumake.quant.calibration.subsampling import MIN_COUNTED

# Waiting values over all threads; each thread has room for one sample at least.
MAX_WAITING_PER_TENSOR = 32 * MIN_COUNTED  # twice the memory of its bins
MAX_WAITING_VALUES = 1 << 23  # all tensors of a layout: 32 MB

Rows = npt.NDArray[np.float32]  # (samples, values)


class SampledPlaces:
    """The elements of a sample that are counted, `enough` of each tensor or somewhat more, and the
    number of samples that each of `threads` threads counts together."""

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
        self.samples = max(
            1,
            min(MAX_WAITING_PER_TENSOR // enough, MAX_WAITING_VALUES // len(self.places))
            // threads,
        )


class ObserverBuffer:
    """Takes samples from one thread. All waiting values use the places of `picked`."""

    def __init__(self, layout: Layout, ways: Sequence[SampledPlaces]) -> None:
        self.reach = MinMaxObserver(layout)
        self.picked = ways[0]
        self._room = np.empty(max(way.samples * len(way.places) for way in ways), np.float32)
        self._row_count = 0

    @property
    def is_empty(self) -> bool:
        return not self._row_count

    @property
    def is_full(self) -> bool:
        return self._row_count == self.picked.samples

    def hold(self, buffer: Buffer) -> None:
        """Adds the sampled elements of one sample."""
        # With mode "wrap" NumPy writes to `out` without a copy; no place lies outside.
        row = self._rows(self._row_count, self._row_count + 1)[0]
        np.take(buffer, self.picked.places, out=row, mode="wrap")
        self._row_count += 1

    def let_go(self) -> Rows:
        """The waiting values, (samples, values). They are valid until the next `hold`."""
        rows, self._row_count = self._row_count, 0
        return self._rows(0, rows)

    def _rows(self, first: int, end: int) -> Rows:
        row_size = len(self.picked.places)
        return self._room[first * row_size : end * row_size].reshape(end - first, row_size)
