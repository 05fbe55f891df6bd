"""Metrics: an observation per sample, and the figures of all observations.

    top1, top5          percentage of pictures whose class has (one of) the largest scores; of equal
                        scores the first counts as the larger, as in NumPy's argmax
    map50, map50_95     COCO's average precision (npumake.evaluate.average_precision), in percent
    mask_map50, …_95    the same for masks, by shared pixels
    precision_at_25 …   beside each average precision: precision and recall of the detections with a
                        score of .25 or more at IoU .50, and `score`, the mean of the right ones
    cosine              to the outputs of the float model, over all pictures, of the worst output
    file.py:function    of the project: function(outputs) → a number, larger is better; outputs come
                        one by one as ({output: array}, class)

Outputs are observed in the thread that computes them, and only observations are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from npumake.errors import ProjectError, Route, did_you_mean
from npumake.evaluate.average_precision import (
    ByClass,
    ImageDetections,
    Truths,
    at_score,
    matches_of_boxes,
    precision_of,
)
from npumake.evaluate.boxes_in_picture import (
    Size,
    boxes_in_picture,
    pixel_transform,
    refuse_other_geometry,
)
from npumake.evaluate.figures import AT_SCORE
from npumake.evaluate.finding import finder
from npumake.evaluate.hook import hooked, is_hook
from npumake.evaluate.masks_in_picture import Frame, matches_of_masks
from npumake.evaluate.setting import Setting
from npumake.evaluate.truths import LABELS, Truth
from npumake.kernels.measure import Agreement, agreement, worst

Arrays = Mapping[str, np.ndarray]
ROUTE = Route("evaluation.metric")
SURE = 0.25  # the score above which users of detectors commonly keep a box


class ScoredSample(NamedTuple):
    """The outputs for one picture, those of the float model if the metric needs them, the truth,
    and the picture's (height, width)."""

    arrays: Arrays
    real: Arrays | None
    truth: Truth
    picture: Size


@dataclass(frozen=True)
class Metric:
    """`look` returns an observation of one sample; `figures` turns all of them into figures by
    name."""

    name: str
    look: Callable[[ScoredSample], Any]
    figures: Callable[[Iterable[Any]], Mapping[str, float]]
    needs_real: bool = False
    travels: bool = True  # whether observations are small and of known kinds


def metric_of(setting: Setting) -> Metric:
    """The configured metric. Raises ProjectError for an unknown one or missing data."""
    name = str(setting.evaluation.metric)
    if is_hook(name):
        function, summed = hooked(name, setting.sources)
        soft = setting.evaluation.postprocess == "softmax"
        return Metric(
            function,
            lambda sample: (_processed(sample.arrays, soft), sample.truth),
            summed,
            travels=False,
        )
    if name not in METRICS:
        hint = did_you_mean(name, [*METRICS, "file.py:function"])
        raise ProjectError(f"unknown metric `{name}`", ROUTE, hint)
    return METRICS[name](name, setting)


def _ranking(name: str, setting: Setting) -> Metric:
    def summed(ranks: Iterable[int]) -> Mapping[str, float]:
        rank_array = np.fromiter(ranks, np.int64)
        return {"top1": _percent(rank_array < 1), "top5": _percent(rank_array < 5)}

    return Metric(name, _rank, summed)


def _rank(sample: ScoredSample) -> int:
    """The number of classes ranked above the true one."""
    if isinstance(sample.truth, Truths):
        raise ProjectError("boxes have no top1", ROUTE, "use map50 for COCO instances")
    scores = np.squeeze(next(iter(sample.arrays.values())))
    if scores.ndim != 1:
        message = f"the first output has shape {list(scores.shape)}, not one score per class"
        raise ProjectError(message, ROUTE, "a `file.py:function` can read any output")
    if sample.truth >= len(scores):
        message = f"the label is class {sample.truth}, the model has {len(scores)}"
        raise ProjectError(message, Route(LABELS), "classes count from 0")
    score = scores[sample.truth]
    if np.isnan(scores).any():
        return len(scores)
    return int(np.sum(scores > score) + np.sum(scores[: sample.truth] == score))


def _percent(right: np.ndarray) -> float:
    return 100 * float(right.mean()) if len(right) else 0.0


def _precision(name: str, setting: Setting) -> Metric:
    find = finder(setting)
    refuse_other_geometry(setting.transforms)

    def look(sample: ScoredSample) -> ByClass:
        detections = find(sample.arrays)
        true = _boxes_of(sample.truth)
        boxes = boxes_in_picture(
            detections.boxes, setting.transforms, sample.picture, setting.input_size
        )
        return matches_of_boxes(ImageDetections(boxes, detections.scores, detections.classes), true)

    return Metric(name, look, partial(_precisions, ("map50", "map50_95")))


def _mask_precision(name: str, setting: Setting) -> Metric:
    find = finder(setting)
    refuse_other_geometry(setting.transforms)

    def look(sample: ScoredSample) -> ByClass:
        transform = pixel_transform(setting.transforms, sample.picture, setting.input_size)
        detections, true = find(sample.arrays), _boxes_of(sample.truth)
        boxes = boxes_in_picture(
            detections.boxes, setting.transforms, sample.picture, setting.input_size
        )
        return matches_of_masks(
            detections, boxes, true, Frame(transform, sample.picture, setting.input_size)
        )

    return Metric(name, look, partial(_precisions, ("mask_map50", "mask_map50_95")))


def _boxes_of(truth: Truth) -> Truths:
    if isinstance(truth, Truths):
        return truth
    hint = "give COCO instances under `evaluation.dataset.labels`"
    raise ProjectError("average precision needs labels with boxes", ROUTE, hint)


def _precisions(names: tuple[str, str], images: Iterable[ByClass]) -> Mapping[str, float]:
    matches_by_image = list(images)
    present = [
        label for image in matches_by_image for label, matches in image.items() if matches.truths
    ]
    precision = precision_of(matches_by_image, 1 + max(present, default=-1))
    figures = (precision.map50, precision.map50_95, *at_score(matches_by_image, SURE))
    return {name: 100 * x for name, x in zip((*names, *AT_SCORE), figures, strict=True)}


def _closeness(name: str, setting: Setting) -> Metric:
    soft = setting.evaluation.postprocess == "softmax"

    def look(sample: ScoredSample) -> list[Agreement]:
        real = _processed(sample.real or {}, soft)
        outputs = _processed(sample.arrays, soft)
        return [agreement(a, b) for a, b in zip(real.values(), outputs.values(), strict=True)]

    def summed(agreements: Iterable[list[Agreement]]) -> Mapping[str, float]:
        totals: list[Agreement] = []
        for row in agreements:
            totals = [a + b for a, b in zip(totals or [Agreement()] * len(row), row, strict=True)]
        return {"cosine": worst(total.cosine for total in totals)}

    return Metric(name, look, summed, needs_real=True)


def _processed(arrays: Arrays, soft: bool) -> Arrays:
    return {name: _softmax(values) for name, values in arrays.items()} if soft else arrays


def _softmax(values: np.ndarray) -> np.ndarray:
    weights = np.exp(values.astype(np.float64) - values.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


METRICS: Mapping[str, Callable[[str, Setting], Metric]] = {
    "top1": _ranking,
    "top5": _ranking,
    "map50": _precision,
    "map50_95": _precision,
    "mask_map50": _mask_precision,
    "mask_map50_95": _mask_precision,
    "cosine": _closeness,
}
