"""Checks whether the calibration set represents the evaluation set.

overlap      files in both sets with the same bytes, or the same values as model inputs
domain       features per sample: mean, deviation, 2nd and 98th percentile, roughness, and color
             for pictures. With the mean m and the variance v of a feature over each set,

                 gap = |m_c - m_e| / sqrt((v_c + v_e) / 2)        (Cohen's d)

             Random halves of one set of photographs stay below 1.2; noise, gray, dark, or
             unnormalized pictures reach 1.9 to 17.
saturation   outputs of the float model beyond their calibrated range; quantized, they saturate

A finding names files and figures. It is a note, not an error: the artifact is correct, but its
calibration is poorly supported.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, NamedTuple

import numpy as np

from npumake import digest
from npumake.custom.operators import Operators
from npumake.data.lint import MIN_SAMPLES
from npumake.data.samples import Feed, Samples
from npumake.engine.float_session import float_session
from npumake.errors import CacheError
from npumake.graph import Graph
from npumake.project.files import SourceFile, SourceFiles
from npumake.quant.calibration.statistics import Statistics

MAX_SAMPLES = 32  # of each set, evenly spread
MAX_NAMES = 3
BASE_GAP, SMALL_SET_GAP = 1.2, 2.0  # the limit is BASE_GAP + SMALL_SET_GAP / sqrt(samples)
MIN_DEVIATION_SHARE = (
    0.02  # share of a sample's own deviation; avoids dividing by 0 for equal samples
)
EXCESS = 0.1  # of the width of a range
EXCESS_SHARE = 0.25  # of the evaluated samples

FEATURES = ("mean", "deviation", "2nd percentile", "98th percentile", "roughness")
COLORS = ("colorfulness", "balance of channel 0", "balance of channel 1", "balance of channel 2")


@dataclass(frozen=True)
class CalibrationFit:
    """Findings against the calibration set, one line each."""

    notes: tuple[str, ...]

    suffix: ClassVar[str] = ".json"

    def save(self, path: Path) -> None:
        path.write_text(digest.text(self, indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> CalibrationFit:
        """Raises CacheError for a file that `save` did not write."""
        try:
            return cls(tuple(str(note) for note in json.loads(path.read_bytes())["notes"]))
        except (ValueError, KeyError, TypeError) as error:
            raise CacheError(f"not a calibration fit: {error}", str(path)) from error


class EvaluationData(NamedTuple):
    """The samples to inspect, and all files."""

    samples: Samples
    files: tuple[SourceFile, ...]


def calibration_fit(
    graph: Graph,
    statistics: Statistics,
    samples: Samples,
    evaluation: EvaluationData,
    sources: SourceFiles,
    operators: Operators,
) -> CalibrationFit:
    """`graph` is the float model of the statistics. Raises PipelineError for an evaluation sample
    that does not fit the model's inputs."""
    if not len(samples):
        return CalibrationFit(())
    chosen_samples = _spread(samples)
    feeds = [dict(feed) for feed in evaluation.samples]
    lines = list(_overlap(chosen_samples, evaluation, feeds, sources))
    lines += _domain_gaps([feed for _, feed in chosen_samples], feeds)
    lines += _saturation(graph, statistics, evaluation.samples.names, feeds, operators)
    return CalibrationFit(tuple(lines))


def _spread(samples: Samples) -> list[tuple[str, Feed]]:
    count = min(len(samples), MAX_SAMPLES)
    chosen = np.linspace(0, len(samples) - 1, count).astype(int)
    return [(samples.names[index], samples.read(index)) for index in chosen]


# -- overlap -------------------------------------------------------------------------------


def _overlap(
    chosen_samples: Sequence[tuple[str, Feed]],
    evaluation: EvaluationData,
    feeds: Sequence[Feed],
    sources: SourceFiles,
) -> Iterator[str]:
    calibration = {
        file.digest: file.name
        for route, files in sources.items()
        if route.startswith("data.")
        for file in files
    }
    shared = {file.name: calibration.get(file.digest) for file in evaluation.files}
    by_digest = {_digest(feed): name for name, feed in chosen_samples}
    for name, feed in zip(evaluation.samples.names, feeds, strict=True):
        shared[name] = shared.get(name) or by_digest.get(_digest(feed))
    pairs = [f"{name} = {match}" for name, match in shared.items() if match]
    if pairs:
        count = f"{len(pairs)} of {len(evaluation.files)} evaluation files"
        yield f"{count} are among the calibration samples: {_listed(pairs)}"


def _digest(feed: Feed) -> str:
    parts = [array.tobytes() for _, array in sorted(feed.items())]
    return digest.of_bytes(b"".join(parts))


# -- domain --------------------------------------------------------------------------------


def _domain_gaps(calibration: Sequence[Feed], evaluation: Sequence[Feed]) -> Iterator[str]:
    fewest = min(len(calibration), len(evaluation))
    if fewest < MIN_SAMPLES:
        return
    limit = BASE_GAP + SMALL_SET_GAP / math.sqrt(fewest)
    for name, first in calibration[0].items():
        if first.dtype.kind not in "fiu" or first.size < 2:
            continue
        calibration_stats, evaluation_stats = (
            np.array([_features(feed[name]) for feed in feeds])
            for feeds in (calibration, evaluation)
        )
        deviation = np.sqrt((calibration_stats.var(axis=0) + evaluation_stats.var(axis=0)) / 2)
        min_deviation = MIN_DEVIATION_SHARE * max(
            calibration_stats[:, 1].mean(), evaluation_stats[:, 1].mean()
        )
        means = calibration_stats.mean(axis=0), evaluation_stats.mean(axis=0)
        gaps = np.abs(means[0] - means[1]) / np.maximum(deviation, max(min_deviation, 1e-12))
        worst = int(np.argmax(gaps))
        if gaps[worst] > limit:
            feature = (*FEATURES, *COLORS)[worst]
            yield (
                f"calibration and evaluation samples of `{name}` are of different domains: their "
                f"{feature} is {means[0][worst]:.4g} and {means[1][worst]:.4g} on average, "
                f"{gaps[worst]:.1f} standard deviations apart (limit {limit:.1f})"
            )


def _features(values: np.ndarray) -> list[float]:
    """FEATURES of an array of any shape; also COLORS for pictures, channels first or last."""
    x = values.astype(np.float64)
    low, high = np.quantile(x, (0.02, 0.98))
    longest = int(np.argmax(x.shape))
    steps = np.abs(np.diff(x, axis=longest)).mean()
    return [x.mean(), x.std(), low, high, steps, *_colors(x)]


def _colors(x: np.ndarray) -> list[float]:
    axis = next((axis for axis in (1, 3) if x.ndim == 4 and x.shape[axis] == 3), None)
    if axis is None:
        return []
    spread = (x.max(axis=axis) - x.min(axis=axis)).mean()
    means = np.moveaxis(x, axis, 0).reshape(3, -1).mean(axis=1)
    return [spread, *(means - means.mean())]


# -- saturation ----------------------------------------------------------------------------


def _saturation(
    graph: Graph,
    statistics: Statistics,
    names: Sequence[str],
    feeds: Sequence[Feed],
    operators: Operators,
) -> Iterator[str]:
    session = float_session(graph, operators)
    output_names = [name for name in session.output_names if name in statistics.tensors]
    if not output_names or not feeds:
        return
    outputs = [session.run(output_names, feed) for feed in feeds]
    for index, name in enumerate(output_names):
        histogram = statistics.tensors[name]
        extremes = [(float(run[index].min()), float(run[index].max())) for run in outputs]
        line = _beyond(name, (histogram.low, histogram.high), extremes, names)
        if line:
            yield line


def _beyond(
    output: str,
    calibrated: tuple[float, float],
    extremes: Sequence[tuple[float, float]],
    names: Sequence[str],
) -> str:
    low, high = calibrated
    excess = [max(low - minimum, maximum - high) for minimum, maximum in extremes]
    beyond = [e > EXCESS * (high - low) for e in excess]
    if sum(beyond) < EXCESS_SHARE * len(excess):
        return ""
    worst = int(np.argmax(excess))
    minimum, maximum = extremes[worst]
    count = f"{sum(beyond)} of {len(beyond)} evaluation samples"
    example = f"{names[worst]}: {minimum:.4g}..{maximum:.4g}"
    return (
        f"output `{output}` saturates: {count} go beyond {low:.4g}..{high:.4g}, "
        f"the range of all calibration samples ({example})"
    )


def _listed(names: Sequence[str]) -> str:
    suffix = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    return ", ".join(names[:MAX_NAMES]) + suffix
