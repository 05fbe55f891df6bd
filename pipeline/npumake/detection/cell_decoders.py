"""Heads that other projects leave to the host: by an output's `decoder`, how it becomes boxes.

With cells (x, y) of stride s, row by row, smallest stride first, and rows of the output in order:

    yolox       cx = (x + t_x) s   w = exp(t_w) s                rows: t_x t_y t_w t_h obj classes
    nanodet     sides = s E(bins), from the corner (x s, y s)    rows: classes, four sides of bins
    fastestdet  cx = (x + tanh t_x) / W   w = sigmoid t_w        rows: obj t_x t_y t_w t_h classes
                score = obj^0.6 class^0.4
    ssd         x1 y1 x2 y2 in 0..1; the first class of the scores is background

Boxes come out as center and size in 0..1. Scores have their activation in the graph. Sources: the
demos of Megvii-BaseDetection/YOLOX, RangiLyu/nanodet, dog-qiuqiu/FastestDet and
Linzaer/Ultra-Light-Fast-Generic-Face-Detector-1MB.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from npumake.errors import GraphError
from npumake.kernels.boxes import expected_bins, sigmoid

Size = tuple[int, int]  # height, width of the model's input
STRIDES = ((8, 16, 32), (8, 16, 32, 64))
MAX_EXPONENT = 50.0  # limits exp
OBJECT_POWER, CLASS_POWER = 0.6, 0.4
BINS = 8  # of a side, of NanoDet
SIDES = 4 * BINS
EPSILON = 1e-12


def cells(size: Size, strides: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """The corners (2, n), in cells, and the stride of each cell (n,)."""
    height, width = size
    corners, of = [], []
    for stride in strides:
        rows, columns = -(-height // stride), -(-width // stride)
        y, x = np.meshgrid(np.arange(rows), np.arange(columns), indexing="ij")
        corners.append(np.stack([x.ravel(), y.ravel()]))
        of.append(np.full(rows * columns, stride))
    return np.concatenate(corners, 1).astype(np.float32), np.concatenate(of).astype(np.float32)


def yolox(rows: np.ndarray, size: Size) -> dict[str, np.ndarray]:
    corners, stride = _cells_of(rows, size)
    middles = (corners + rows[:2]) * stride
    sides = np.exp(np.minimum(rows[2:4], MAX_EXPONENT)) * stride
    return {"boxes": _in_unit(middles, sides, size), "scores": rows[5:] * rows[4:5]}


def nanodet(rows: np.ndarray, size: Size) -> dict[str, np.ndarray]:
    corners, stride = _cells_of(rows, size)
    left, top, right, bottom = expected_bins(rows[-SIDES:]) * stride
    x, y = corners * stride
    middles = np.stack([x + (right - left) / 2, y + (bottom - top) / 2])
    sides = np.stack([left + right, top + bottom])
    return {"boxes": _in_unit(middles, sides, size), "scores": rows[:-SIDES]}


def fastestdet(rows: np.ndarray, size: Size) -> dict[str, np.ndarray]:
    height, width = size
    stride = round(float(np.sqrt(height * width / rows.shape[1])))
    corners, _ = cells(size, (stride,))
    if corners.shape[1] != rows.shape[1]:
        hint = "FastestDet's cells are squares: check `shape` and the shape of the input"
        raise GraphError(f"{rows.shape[1]} cells of a picture of {height} x {width}", hint=hint)
    columns = np.array([[-(-width // stride)], [-(-height // stride)]], np.float32)
    middles = (corners + np.tanh(rows[1:3])) / columns
    boxes = np.concatenate([middles, sigmoid(rows[3:5])])
    scores = np.maximum(rows[:1], EPSILON) ** OBJECT_POWER
    return {"boxes": boxes, "scores": scores * np.maximum(rows[5:], EPSILON) ** CLASS_POWER}


def from_corners(boxes: np.ndarray) -> np.ndarray:
    """x1, y1, x2, y2 (4, n) as center and size."""
    low, high = boxes[:2], boxes[2:]
    return np.concatenate([(low + high) / 2, high - low])


def _cells_of(rows: np.ndarray, size: Size) -> tuple[np.ndarray, np.ndarray]:
    """The cells of as many boxes as there are rows. Raises GraphError."""
    for strides in STRIDES:
        corners, stride = cells(size, strides)
        if corners.shape[1] == rows.shape[1]:
            return corners, stride
    counts = {strides: len(cells(size, strides)[1]) for strides in STRIDES}
    hint = ", ".join(f"{count} for strides {list(strides)}" for strides, count in counts.items())
    height, width = size
    message = f"{rows.shape[1]} boxes are not those of a picture of {height} x {width}"
    raise GraphError(message, hint=f"they are {hint}")


def _in_unit(middles: np.ndarray, sides: np.ndarray, size: Size) -> np.ndarray:
    unit = np.array([[size[1]], [size[0]]], np.float32)
    return np.concatenate([middles / unit, sides / unit])


SSD = "ssd"
CELL_DECODERS: Mapping[str, Callable[[np.ndarray, Size], dict[str, np.ndarray]]] = {
    "fastestdet": fastestdet,
    "nanodet": nanodet,
    "yolox": yolox,
}
