"""Statistics: histograms and extremes of each tensor, from which every method derives ranges.

Shards of the samples merge to the same bytes in any order: histograms add up (kernels.histogram),
extremes combine, and per-sample extremes are stored by sample number.
"""

from __future__ import annotations

import math
import zipfile
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from npumake.errors import CacheError
from npumake.kernels.histogram import BINS, Histogram, merged

T = TypeVar("T")


class Extremes(NamedTuple):
    """Least and largest values, float32 of one shape."""

    low: npt.NDArray[np.float32]
    high: npt.NDArray[np.float32]

    def __or__(self, other: Extremes) -> Extremes:
        return Extremes(np.minimum(self.low, other.low), np.maximum(self.high, other.high))


@dataclass(frozen=True)
class Statistics:
    """Statistics by tensor of the float graph.

    `tensors` has a histogram each. `channels` has the extremes of each channel, (channels,), of
    tensors with four axes. `samples` has the extremes of each sample, (samples,), in the order of
    the sample `numbers`. `peaks` has the least row maximum of Softmax inputs. The least value
    behind a clamp at zero is the clamp's bound.
    """

    tensors: Mapping[str, Histogram]
    channels: Mapping[str, Extremes] = field(default_factory=dict)
    samples: Mapping[str, Extremes] = field(default_factory=dict)
    numbers: tuple[int, ...] = ()
    peaks: Mapping[str, float] = field(default_factory=dict)

    suffix: ClassVar[str] = ".npz"

    def of(self, names: Collection[str]) -> Statistics:
        """The statistics of these tensors."""
        names = frozenset(names)

        def of_names(entries: Mapping[str, T]) -> dict[str, T]:
            return {name: entry for name, entry in entries.items() if name in names}

        parts = (of_names(self.tensors), of_names(self.channels), of_names(self.samples))
        return Statistics(*parts, self.numbers, of_names(self.peaks))

    def save(self, path: Path) -> None:
        """Writes an .npz: by tensor name, exponent, low, high, count and peak; the non-empty bins
        as `bin` and `bin_count`; extremes of channels and samples, one tensor after another."""
        histograms = list(self.tensors.values())
        columns: dict[str, Any] = {
            "tensor": np.array(list(self.tensors), str),
            "exponent": np.array([h.exponent for h in histograms], np.int32),
            "low": np.array([h.low for h in histograms], np.float32),
            "high": np.array([h.high for h in histograms], np.float32),
            "count": np.array([h.count for h in histograms], np.int64),
            "bins": np.array([len(h.bins) for h in histograms], np.int64),
            "bin": _joined([h.bins for h in histograms], np.int32),
            "bin_count": _joined([h.bin_counts for h in histograms], np.int64),
            "number": np.array(self.numbers, np.int64),
            "peak": np.array([self.peaks.get(name, np.nan) for name in self.tensors], np.float32),
            "channels": np.array([_size(self.channels, name) for name in self.tensors], np.int64),
        }
        for kind, extremes in (("channel", self.channels), ("sample", self.samples)):
            for side in ("low", "high"):
                parts = [getattr(extremes[n], side) for n in self.tensors if n in extremes]
                columns[f"{kind}_{side}"] = _joined(parts, np.float32)
        with path.open("wb") as file:
            np.savez(file, **columns)

    @classmethod
    def load(cls, path: Path) -> Statistics:
        """Raises CacheError for a file that `save` did not write."""
        try:
            with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
                columns = {name: arrays[name] for name in arrays.files}
            names = [str(name) for name in columns["tensor"]]
            tensors = dict(zip(names, _histograms(columns), strict=True))
            numbers = tuple(int(number) for number in columns["number"])
            channels = _parted(columns, "channel", names, columns["channels"])
            lengths = np.full(len(names), len(numbers))
            samples = _parted(columns, "sample", names, lengths)
            tops = zip(names, columns["peak"].tolist(), strict=True)
            peaks = {name: top for name, top in tops if not math.isnan(top)}
            return cls(tensors, channels, samples, numbers, peaks)
        except (OSError, EOFError, ValueError, KeyError, IndexError, zipfile.BadZipFile) as error:
            raise CacheError(f"not a statistics file: {error}", str(path)) from error


def merged_statistics(a: Statistics, b: Statistics) -> Statistics:
    """The mergeable statistics (calibration.observe) of the samples of both, to the byte.

    Raises ValueError for different tensors or a shared sample.
    """
    if list(a.tensors) != list(b.tensors) or set(a.numbers) & set(b.numbers):
        raise ValueError("not two shards of one set of samples")
    numbers = np.array([*a.numbers, *b.numbers])
    order = np.argsort(numbers)
    samples = {
        name: Extremes(*(np.concatenate(pair)[order] for pair in zip(of_a, of_b, strict=True)))
        for name, of_a, of_b in ((n, a.samples[n], b.samples[n]) for n in a.samples)
    }
    return Statistics(
        {name: merged(a.tensors[name], b.tensors[name]) for name in a.tensors},
        {name: a.channels[name] | b.channels[name] for name in a.channels},
        samples,
        tuple(int(number) for number in numbers[order]),
        {name: min(a.peaks[name], b.peaks[name]) for name in a.peaks},
    )


def _joined(parts: list[np.ndarray], dtype: npt.DTypeLike) -> np.ndarray:
    return np.concatenate([np.zeros(0, dtype), *parts]).astype(dtype)


def _size(extremes: Mapping[str, Extremes], name: str) -> int:
    return len(extremes[name].low) if name in extremes else 0


def _histograms(columns: Mapping[str, np.ndarray]) -> list[Histogram]:
    ends = np.cumsum(columns["bins"])
    histograms = []
    for row, (end, size) in enumerate(zip(ends, columns["bins"], strict=True)):
        bins, counts = (columns[name][end - size : end] for name in ("bin", "bin_count"))
        _refuse_disorder(bins, counts)
        exponent, low, high, count = (
            columns[name][row].item() for name in ("exponent", "low", "high", "count")
        )
        histograms.append(Histogram(exponent, bins, counts, low, high, count))
    return histograms


def _refuse_disorder(bins: np.ndarray, counts: np.ndarray) -> None:
    limits = np.concatenate([[-1], bins, [2 * BINS]])
    if len(bins) != len(counts) or (np.diff(limits) <= 0).any():
        raise ValueError("bins that are not in order")


def _parted(
    columns: Mapping[str, np.ndarray], kind: str, names: list[str], sizes: np.ndarray
) -> dict[str, Extremes]:
    ends = np.cumsum(sizes)
    low, high = columns[f"{kind}_low"], columns[f"{kind}_high"]
    if len(low) != len(high) or len(low) != sizes.sum():
        raise ValueError(f"{len(low)} extremes by {kind}")
    spans = [slice(end - size, end) for end, size in zip(ends, sizes, strict=True)]
    return {
        name: Extremes(low[span], high[span])
        for name, span, size in zip(names, spans, sizes, strict=True)
        if size
    }
