"""Boxes of detectors: decoding distances, overlaps, suppression, masks.

    d = sum_i i * softmax(logits)_i                            (cells, DFL over bins)
    xc = (gx + (r - l) / 2) s    w = (l + r) s                 (gx: center of the cell, s: stride)
    yc = (gy + (b - t) / 2) s    h = (t + b) s
    iou = |a and b| / |a or b|

Sides are in the order left, top, right, bottom. Source: the Ultralytics head as EdgeFirst's HAL
decodes it.
"""

from __future__ import annotations

import numpy as np

from npumake.kernels.arrays import Floats


def sigmoid(x: Floats) -> Floats:
    """1 / (1 + exp(-x)), without overflow."""
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, small) / (1 + small)


def expected_bins(logits: Floats) -> Floats:
    """(4 * bins, n) → (4, n) distances in cells: per side the expected bin of a softmax."""
    bins = logits.shape[0] // 4
    sides = logits.reshape(4, bins, -1)
    weights = np.exp(sides - sides.max(1, keepdims=True))
    index = np.arange(bins, dtype=logits.dtype)
    return np.einsum("sbn,b->sn", weights, index) / weights.sum(1)


def cell_centers(height: int, width: int) -> Floats:
    """(2, height * width): x and y of every cell center in cells, row by row."""
    y, x = np.mgrid[:height, :width]
    return np.stack([x.ravel(), y.ravel()]).astype(np.float32) + np.float32(0.5)


def boxes_of(distances: Floats, centers: Floats, stride: Floats | float) -> Floats:
    """(4, n) distances in cells → (4, n) center and size in pixels."""
    first, last = distances[:2], distances[2:]
    return np.concatenate([centers + (last - first) / 2, first + last]) * stride


def corners(boxes: Floats) -> Floats:
    """(4, n) center and size → (n, 4) x1, y1, x2, y2."""
    center, half = boxes[:2], boxes[2:] / 2
    return np.concatenate([center - half, center + half]).T


def suppressed(
    boxes: Floats, scores: Floats, limit: float, max_boxes: int, classes: Floats | None = None
) -> np.ndarray:
    """Non-maximum suppression: the remaining indices, best first. A box is dropped if its IoU with
    a better one exceeds `limit` (of the same class, if `classes` are given). `boxes` (n, 4) are
    corners."""
    order = np.argsort(-scores, kind="stable")
    area = np.maximum(boxes[:, 2:] - boxes[:, :2], 0).prod(1)
    indices: list[int] = []
    while len(order) and len(indices) < max_boxes:
        best, order = order[0], order[1:]
        indices.append(int(best))
        low = np.maximum(boxes[best, :2], boxes[order, :2])
        high = np.minimum(boxes[best, 2:], boxes[order, 2:])
        shared = np.maximum(high - low, 0).prod(1)
        dropped = shared > limit * (area[best] + area[order] - shared)
        if classes is not None:
            dropped &= classes[order] == classes[best]
        order = order[~dropped]
    return np.array(indices, np.int64)


def masks(coefficients: Floats, protos: Floats, boxes: Floats) -> np.ndarray:
    """(n, k), (k, h, w) and corners (n, 4) in 0..1 → (n, h, w) of bool: inside the box and
    coefficients @ protos > 0, where its sigmoid exceeds one half."""
    count, height, width = protos.shape
    logits = (coefficients @ protos.reshape(count, -1)).reshape(-1, height, width)
    x1, y1, x2, y2 = (boxes * np.array([width, height] * 2, boxes.dtype)).T[:, :, None]
    columns, rows = np.arange(width), np.arange(height)
    inside = ((columns >= x1) & (columns < x2))[:, None, :]
    return (logits > 0) & inside & ((rows >= y1) & (rows < y2))[:, :, None]
