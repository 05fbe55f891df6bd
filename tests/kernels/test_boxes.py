"""Boxes of detectors, against versions written out box by box."""

from __future__ import annotations

import math

import numpy as np
import pytest

from npumake.kernels.boxes import (
    boxes_of,
    cell_centers,
    corners,
    expected_bins,
    masks,
    sigmoid,
    suppressed,
)


def drawn(seed: int, count: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    low = rng.random((count, 2))
    return np.concatenate([low, low + rng.random((count, 2)) * 0.3], 1)


def overlap(a: np.ndarray, b: np.ndarray) -> float:
    width = max(0.0, min(a[2], b[2]) - max(a[0], b[0]))
    height = max(0.0, min(a[3], b[3]) - max(a[1], b[1]))
    areas = sum((box[2] - box[0]) * (box[3] - box[1]) for box in (a, b))
    return width * height / (areas - width * height)


def greedy(boxes, scores, limit, most, classes):
    kept: list[int] = []
    for i in sorted(range(len(scores)), key=lambda i: (-scores[i], i)):
        rivals = [j for j in kept if classes is None or classes[i] == classes[j]]
        if len(kept) < most and all(overlap(boxes[i], boxes[j]) <= limit for j in rivals):
            kept.append(i)
    return kept


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("aware", [False, True])
@pytest.mark.parametrize("most", [7, 300])
def test_suppression_is_the_greedy_one(seed, aware, most):
    boxes, rng = drawn(seed, 120), np.random.default_rng(seed)
    scores = rng.integers(0, 20, 120) / 20  # with ties
    classes = rng.integers(0, 3, 120) if aware else None
    expected = greedy(boxes, scores, 0.4, most, classes)
    np.testing.assert_array_equal(suppressed(boxes, scores, 0.4, most, classes), expected)


def test_an_overlap_of_just_the_limit_stays():
    boxes = np.array([[0, 0, 2, 1], [1, 0, 3, 1]], np.float64)  # one third
    assert list(suppressed(boxes, np.array([1.0, 0.5]), 1 / 3 + 1e-9, 9)) == [0, 1]
    assert list(suppressed(boxes, np.array([1.0, 0.5]), 1 / 3 - 1e-9, 9)) == [0]
    assert len(suppressed(boxes[:0], np.array([]), 0.5, 9)) == 0


def test_a_side_is_the_expected_bin_of_its_softmax():
    logits = np.random.default_rng(0).normal(0, 30, (4 * 16, 5))
    for n in range(5):
        for side in range(4):
            x = logits[16 * side : 16 * side + 16, n]
            weights = [math.exp(value - max(x)) for value in x]
            expected = sum(i * w for i, w in enumerate(weights)) / sum(weights)
            assert expected_bins(logits)[side, n] == pytest.approx(expected, rel=1e-12)
    assert np.isfinite(expected_bins(np.full((64, 1), 1e30, np.float32))).all()


def test_distances_become_a_box_around_the_centre_of_a_cell():
    centers = cell_centers(2, 3)
    assert centers.T.tolist() == [[x + 0.5, y + 0.5] for y in range(2) for x in range(3)]
    left, top, right, bottom = 1.0, 2.0, 3.0, 4.0
    boxes = boxes_of(np.array([[left], [top], [right], [bottom]]), centers[:, 4:5], 8.0)
    x, y = 1.5, 1.5  # of cell 4, in cells
    box = [8 * (x - left), 8 * (y - top), 8 * (x + right), 8 * (y + bottom)]
    np.testing.assert_allclose(corners(boxes), [box])


def test_a_mask_is_where_the_sigmoid_is_above_one_half_inside_the_box():
    rng = np.random.default_rng(0)
    coefficients, protos = rng.normal(size=(6, 4)), rng.normal(size=(4, 10, 12))
    boxes = drawn(1, 6)
    found = masks(coefficients, protos, boxes)
    for n, (x1, y1, x2, y2) in enumerate(boxes):
        for row in range(10):
            for column in range(12):
                inside = x1 * 12 <= column < x2 * 12 and y1 * 10 <= row < y2 * 10
                above = 1 / (1 + math.exp(-coefficients[n] @ protos[:, row, column])) > 0.5
                assert found[n, row, column] == (inside and above)
    assert masks(coefficients[:0], protos, boxes[:0]).shape == (0, 10, 12)


def test_a_sigmoid_does_not_overflow():
    x = np.array([-1e4, -3.0, 0.0, 3.0, 1e4])
    expected = [0, 1 / (1 + math.exp(3)), 0.5, 1 / (1 + math.exp(-3)), 1]
    np.testing.assert_allclose(sigmoid(x), expected, rtol=1e-15)
