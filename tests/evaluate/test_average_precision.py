"""Average precision is pycocotools' own, on detections that try to tell the two apart."""

from __future__ import annotations

import contextlib
import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import RandomState
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from draws import examples
from npumake.errors import StageError
from npumake.evaluate import AveragePrecision, ImageDetections, Truths, average_precision, box_iou
from npumake.evaluate.average_precision import at_score, matches_of_boxes

CLASSES = 4


def xywh(box: np.ndarray) -> list[float]:
    left, top, right, bottom = map(float, box)
    return [left, top, right - left, bottom - top]


def coco(detections: list[ImageDetections], truths: list[Truths]) -> AveragePrecision:
    """The same figures, by pycocotools."""
    evaluation = evaluated(detections, truths)
    evaluation.accumulate()
    precision = evaluation.eval["precision"][:, :, :, 0, -1]  # area all, 100 detections
    return AveragePrecision(np.where(precision < 0, np.nan, precision).mean(axis=1))


def evaluated(detections: list[ImageDetections], truths: list[Truths]) -> COCOeval:
    truth = [
        {"image_id": n, "category_id": int(label), "bbox": xywh(box), "iscrowd": int(crowd)}
        | {"area": xywh(box)[2] * xywh(box)[3]}
        for n, image in enumerate(truths)
        for box, label, crowd in zip(*image[:3], strict=True)
    ]
    found = [
        {"image_id": n, "category_id": int(label), "bbox": xywh(box), "score": float(score)}
        for n, image in enumerate(detections)
        for box, score, label in zip(*image, strict=True)
    ]
    with contextlib.redirect_stdout(io.StringIO()):
        data = COCO()
        data.dataset = {
            "info": {},
            "images": [{"id": n} for n in range(len(truths))],
            "categories": [{"id": n} for n in range(CLASSES)],
            "annotations": [each | {"id": n + 1} for n, each in enumerate(truth)],
        }
        data.createIndex()
        evaluation = COCOeval(data, data.loadRes(found), "bbox")
        evaluation.evaluate()
    return evaluation


def images(seed: int, crowds: float) -> tuple[list[ImageDetections], list[Truths]]:
    """Boxes on a grid of half pixels and scores of one digit: overlaps and scores tie."""
    random = RandomState(seed)

    def boxes(count: int) -> np.ndarray:
        corner, size = random.randint(0, 40, (count, 2)), random.randint(1, 30, (count, 2))
        return np.concatenate([corner, corner + size], axis=1) / 2

    detections, truths = [], []
    for _ in range(random.randint(1, 5)):
        there, extra = random.randint(0, 7), random.randint(1, 20)
        true = boxes(there)
        near = np.repeat(true, 3, axis=0) + random.randint(-3, 4, (3 * there, 4)) / 2
        near[:, 2:] = np.maximum(near[:, 2:], near[:, :2] + 0.5)
        said = np.concatenate([near, true, boxes(extra)])
        scores = random.randint(0, 10, len(said)) / 10
        labels = random.randint(0, CLASSES - 1, there)
        guesses = [np.repeat(labels, 3), labels, random.randint(0, CLASSES, extra)]
        detections.append(ImageDetections(said, scores, np.concatenate(guesses)))
        truths.append(Truths(true, labels, random.uniform(size=there) < crowds))
    return detections, truths


@given(seed=st.integers(0, 2**32 - 1), crowds=st.sampled_from([0.0, 0.3, 1.0]))
@examples(100)
def test_it_equals_pycocotools_with_ties_crowds_and_empty_classes(seed, crowds):
    detections, truths = images(seed, crowds)
    ours = average_precision(detections, truths, CLASSES)
    assert ours.by_class == pytest.approx(coco(detections, truths).by_class, abs=1e-9, nan_ok=True)


@given(seed=st.integers(0, 2**32 - 1), crowds=st.sampled_from([0.0, 0.3]))
@examples(50)
def test_precision_and_recall_at_one_score_equal_pycocotools_matches(seed, crowds):
    detections, truths = images(seed, crowds)
    sure = [
        ImageDetections(*(column[image.scores >= 0.5] for column in image)) for image in detections
    ]
    if not any(len(image.scores) for image in sure):
        return
    found = [entry for entry in evaluated(sure, truths).evalImgs if entry and entry["aRng"][0] == 0]
    whole = [entry for entry in found if entry["aRng"][1] > 1e9]
    right = sum(np.sum((e["dtMatches"][0] > 0) & ~e["dtIgnore"][0]) for e in whole)
    counted = sum(np.sum(~e["dtIgnore"][0]) for e in whole)
    there = sum(np.sum(~truth.crowd) for truth in truths)
    ours = at_score([*map(matches_of_boxes, detections, truths)], 0.5)
    assert ours.precision == pytest.approx(right / max(counted, 1))
    assert ours.recall == pytest.approx(right / max(there, 1))


def test_scores_that_sink_together_keep_their_average_precision_and_lose_recall():
    boxes, labels = np.array([[0.0, 0, 8, 8], [9, 9, 12, 15]]), np.array([0, 1])
    truths = [Truths(boxes, labels, np.zeros(2, bool))]
    scores = np.array([0.4, 0.9])
    points, precisions = [], []
    for factor in (1.0, 0.5):
        detections = ImageDetections(boxes, factor * scores, labels)
        precisions.append(average_precision([detections], truths, 2).map50)
        points.append(at_score([matches_of_boxes(detections, truths[0])], 0.25))
    assert precisions == [1.0, 1.0]
    assert points == [(1.0, 1.0, pytest.approx(0.65)), (1.0, 0.5, pytest.approx(0.325))]


def test_more_than_100_detections_of_a_class_are_cut_to_the_best_as_pycocotools_does():
    random = RandomState(0)
    true = np.array([[0, 0, 10, 10], [20, 20, 40, 40]], float)
    said = np.repeat(true, 90, axis=0) + random.randint(-4, 5, (180, 4)) / 4
    scores, labels = random.uniform(size=180), np.zeros(180, int)
    detections = [ImageDetections(said, scores, labels)]
    truths = [Truths(true, np.zeros(2, int), np.zeros(2, bool))]
    expected = coco(detections, truths).by_class
    ours = average_precision(detections, truths, CLASSES).by_class
    assert ours == pytest.approx(expected, abs=1e-9, nan_ok=True)
    assert 0 < ours[0, 0] < 1


def test_a_perfect_answer_is_1_and_nothing_said_is_0():
    boxes, labels = np.array([[0.0, 0, 8, 8], [9, 9, 12, 15]]), np.array([0, 1])
    truths = [Truths(boxes, labels, np.zeros(2, bool))]
    perfect = average_precision([ImageDetections(boxes, np.ones(2), labels)], truths, 2)
    silent = average_precision([ImageDetections(boxes[:0], np.ones(0), labels[:0])], truths, 2)
    assert (perfect.map50, perfect.map50_95) == (1.0, 1.0)
    assert (silent.map50, silent.map50_95) == (0.0, 0.0)


def test_a_class_without_truths_is_no_class():
    nothing = Truths(np.zeros((0, 4)), np.zeros(0, int), np.zeros(0, bool))
    said = ImageDetections(np.array([[0.0, 0, 1, 1]]), np.ones(1), np.zeros(1, int))
    assert np.isnan(average_precision([said], [nothing], 1).by_class).all()
    assert average_precision([said], [nothing], 1).map50_95 == 0.0


def test_boxes_that_only_touch_or_have_no_area_do_not_overlap():
    boxes = np.array([[0.0, 0, 4, 4], [2, 2, 2, 2]])
    truths = np.array([[4.0, 0, 8, 4], [2, 2, 2, 2], [0, 0, 4, 2]])
    assert box_iou(boxes, truths, np.zeros(3, bool)).tolist() == [[0, 0, 0.5], [0, 0, 0]]


def test_arrays_that_do_not_belong_together_are_refused():
    said = ImageDetections(np.zeros((2, 4)), np.ones(1), np.zeros(2, int))
    nothing = Truths(np.zeros((0, 4)), np.zeros(0, int), np.zeros(0, bool))
    with pytest.raises(StageError, match="image 0: boxes, scores, labels and crowd differ"):
        average_precision([said], [nothing], 1)
    with pytest.raises(StageError, match="1 images of detections, 0 of truths"):
        average_precision([said], [], 1)
