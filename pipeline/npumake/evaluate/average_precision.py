"""COCO's average precision (area "all", at most 100 detections per image and class).

Per class, in falling order of score, each detection matches the unmatched truth of its image with
the largest overlap, if the overlap reaches a threshold t of .50, .55 … .95. A detection without a
match is false. A match with a crowd is ignored, and crowds do not count as truths. After k
detections over all images, with n truths and T_k true and F_k false detections,

    precision p_k = T_k / (T_k + F_k)        recall r_k = T_k / n
    AP = mean over r of 0, .01 … 1 of  max {p_k : r_k >= r}, 0 if there is none

    IoU(a, b) = |a ∩ b| / (|a| + |b| - |a ∩ b|), of a crowd b   |a ∩ b| / |a|

Ties as in pycocotools: equal scores keep their order, equal overlaps take the last truth. The
figures equal pycocotools' (`precision.mean()` over the classes with truths).
Source: cocodataset.org, detection evaluation; pycocotools cocoeval.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from npumake.errors import StageError
from npumake.evaluate.outlines import Outline

Array: TypeAlias = NDArray[np.floating]
Flags: TypeAlias = NDArray[np.bool_]

THRESHOLDS = np.linspace(0.5, 0.95, 10)
RECALLS = np.linspace(0.0, 1.0, 101)
MAX_DETECTIONS = 100  # detections of one class in one image


class ImageDetections(NamedTuple):
    """The detections of a model in one image."""

    boxes: Array  # (D, 4): left, top, right, bottom, in any unit
    scores: Array  # (D,)
    labels: NDArray[np.integer]  # (D,)


class Truths(NamedTuple):
    """The ground truth of one image."""

    boxes: Array  # (G, 4), in the same unit
    labels: NDArray[np.integer]  # (G,)
    crowd: Flags  # (G,): regions with many objects
    outlines: tuple[Outline, ...] = ()  # G, if known


@dataclass(frozen=True)
class AveragePrecision:
    """AP per threshold and class (10, classes); NaN for a class without truths."""

    by_class: Array

    @property
    def map50(self) -> float:
        """At IoU .50, the mean over classes."""
        return _mean(self.by_class[0])

    @property
    def map50_95(self) -> float:
        """The mean over thresholds and classes; 0 if no class has a truth."""
        return _mean(self.by_class)


class Overlaps(NamedTuple):
    """The overlaps of one image's detections with its truths, for boxes or masks."""

    scores: Array  # (D,)
    labels: NDArray[np.integer]  # (D,)
    true_labels: NDArray[np.integer]  # (G,)
    crowd: Flags  # (G,)
    overlap: Array  # (D, G)


class Matches(NamedTuple):
    """The D detections of one class in one image, best first, and the number of its truths."""

    scores: Array  # (D,)
    true: Flags  # (10, D)
    ignored: Flags  # (10, D)
    truths: int


class OperatingPoint(NamedTuple):
    """What a user who keeps detections above one score sees; each 0..1."""

    precision: float
    recall: float
    score: float  # the mean score of right detections, with any score


ByClass: TypeAlias = Mapping[int, Matches]


def average_precision(
    detections: Sequence[ImageDetections], truths: Sequence[Truths], classes: int
) -> AveragePrecision:
    """AP of the images' `detections` against their `truths`, for labels 0 … classes - 1.

    Raises StageError if their counts differ, or the arrays of one image differ in length.
    """
    if len(detections) != len(truths):
        raise StageError(f"{len(detections)} images of detections, {len(truths)} of truths")
    for number, (detected, true) in enumerate(zip(detections, truths, strict=True)):
        if any(len({len(array) for array in group}) != 1 for group in (detected, true[:3])):
            raise StageError(f"image {number}: boxes, scores, labels and crowd differ in length")
    images = [matches_of_boxes(*pair) for pair in zip(detections, truths, strict=True)]
    return precision_of(images, classes)


def matches_of_boxes(detections: ImageDetections, true: Truths) -> ByClass:
    """Matches of one image by the overlap of boxes."""
    overlap = box_iou(detections.boxes, true.boxes, true.crowd)
    return matches_of(
        Overlaps(detections.scores, detections.labels, true.labels, true.crowd, overlap)
    )


def matches_of(image: Overlaps) -> ByClass:
    """Matches of one image; only the best MAX_DETECTIONS of a class need an overlap."""
    labels = {*image.labels.tolist(), *image.true_labels.tolist()}
    return {label: _matches(image, label) for label in sorted(labels)}


def precision_of(images: Sequence[ByClass], classes: int) -> AveragePrecision:
    """AP over all images, for labels 0 … classes - 1."""
    by_class = [
        _of_class([image[label] for image in images if label in image]) for label in range(classes)
    ]
    return AveragePrecision(np.stack(by_class, axis=1) if by_class else np.zeros((10, 0)))


def at_score(images: Sequence[ByClass], threshold: float) -> OperatingPoint:
    """Precision and recall at IoU .50 of the detections with this score or more. Average precision
    only sees the order of scores: a model whose scores all sink keeps it, and loses here."""
    matches = [entry for image in images for entry in image.values()]
    scores = np.concatenate([np.zeros(0), *(entry.scores for entry in matches)])
    true, ignored = (
        np.concatenate([np.zeros(0, bool), *(flags[0] for flags in column)])
        for column in ([m.true for m in matches], [m.ignored for m in matches])
    )
    truths, sure = sum(entry.truths for entry in matches), scores >= threshold
    right, count = int(np.sum(true & sure)), int(np.sum(~ignored & sure))
    return OperatingPoint(
        right / max(count, 1),
        right / max(truths, 1),
        float(scores[true].mean()) if true.any() else 0.0,
    )


def box_iou(boxes: Array, truths: Array, crowd: Flags) -> Array:
    """IoU of (D, 4) with (G, 4), crowd flags (G,) → (D, G); empty boxes overlap nothing."""
    boxes, truths = np.asarray(boxes, np.float64), np.asarray(truths, np.float64)
    low = np.maximum(boxes[:, None, :2], truths[None, :, :2])
    high = np.minimum(boxes[:, None, 2:], truths[None, :, 2:])
    shared = np.prod(np.maximum(high - low, 0), axis=-1)
    area, other = (np.prod(corners[:, 2:] - corners[:, :2], axis=-1) for corners in (boxes, truths))
    either = np.where(crowd, area[:, None], area[:, None] + other - shared)
    return np.divide(shared, either, out=np.zeros_like(shared), where=shared > 0)


def best_of(scores: Array, labels: NDArray[np.integer], label: int) -> NDArray[np.intp]:
    """Indices of the best MAX_DETECTIONS detections of a class, best first."""
    matches = np.flatnonzero(labels == label)
    return matches[np.argsort(-scores[matches], kind="stable")][:MAX_DETECTIONS]


def _matches(image: Overlaps, label: int) -> Matches:
    """One class of one image."""
    selected = best_of(image.scores, image.labels, label)
    truths = image.true_labels == label
    crowd = image.crowd[truths]
    true, ignored = matched(image.overlap[np.ix_(selected, truths)], crowd)
    return Matches(image.scores[selected], true, ignored, int(np.sum(~crowd)))


def matched(overlap: Array, crowd: Flags) -> tuple[Flags, Flags]:
    """Which detections are true and which are ignored, per threshold: (10, D) each.

    `overlap` is (D, G), best detection first; `crowd` is (G,).
    """
    count, truths = overlap.shape
    true, ignored = np.zeros((2, len(THRESHOLDS), count), bool)
    if truths == 0:
        return true, ignored
    free = np.ones((len(THRESHOLDS), truths), bool)
    for number, row in enumerate(overlap):
        fits = free & (row >= THRESHOLDS[:, None])
        real = fits & ~crowd
        candidates = np.where(real.any(axis=1, keepdims=True), real, fits)
        best = truths - 1 - np.argmax(np.where(candidates, row, -1.0)[:, ::-1], axis=1)
        has_match = candidates.any(axis=1)
        true[:, number], ignored[:, number] = has_match & ~crowd[best], has_match & crowd[best]
        at = np.flatnonzero(true[:, number])
        free[at, best[at]] = False
    return true, ignored


def _of_class(matches: Sequence[Matches]) -> Array:
    """AP per threshold (10,)."""
    truths = sum(match.truths for match in matches)
    if truths == 0:
        return np.full(len(THRESHOLDS), np.nan)
    order = np.argsort(-np.concatenate([match.scores for match in matches]), kind="stable")
    true = np.concatenate([match.true for match in matches], axis=1)[:, order]
    ignored = np.concatenate([match.ignored for match in matches], axis=1)[:, order]
    right, wrong = np.cumsum(true, axis=1), np.cumsum(~true & ~ignored, axis=1)
    precision = right / np.maximum(right + wrong, 1)
    highest = np.maximum.accumulate(precision[:, ::-1], axis=1)[:, ::-1]
    padded = np.concatenate([highest, np.zeros((len(THRESHOLDS), 1))], axis=1)
    recalls = right / truths
    at = [np.searchsorted(recall, RECALLS, side="left") for recall in recalls]
    return np.array([row[places].mean() for row, places in zip(padded, at, strict=True)])


def _mean(values: Array) -> float:
    numbers = values[~np.isnan(values)]
    return float(numbers.mean()) if len(numbers) else 0.0
