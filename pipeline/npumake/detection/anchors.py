"""Boxes relative to cells or anchors of separate outputs: by `decoder`, how they are decoded.

With cells (x, y) of stride s, row by row, smallest stride first, and anchors (a_x, a_y, a_w, a_h):

    yunet   cx = (x + t_x) s   w = exp(t_w) s     score = sqrt(class object), both within 0..1
    scrfd   sides = s t, from the corner (x s, y s); one or more boxes a cell
    ssd     cx = a_x + t_x u a_w   w = a_w exp(t_w v)     `encoding: anchor` with variances u, v

y and h likewise. Rows of boxes are (4, n), boxes come out as centre and size in 0..1. `anchors` of
an output are (cx, cy, w, h), or levels {"stride", "sizes"} with one square at the middle of a cell.
Sources: FaceDetectorYN of OpenCV, insightface's SCRFD, Pytorch_Retinaface of biubug6.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from npumake.detection.cell_decoders import SSD, Size, cells
from npumake.detection.outputs import DetectorOutput
from npumake.digest import Json
from npumake.errors import GraphError

STRIDES = (8, 16, 32)
MAX_EXPONENT = 50.0  # limits exp
VARIANCES = (0.1, 0.2)
LEVEL = '{"stride": 8, "sizes": [16, 32]}'
YUNET, SCRFD = "yunet", "scrfd"
Y_FIRST = "yxhw"  # of an output's `order`: TensorFlow's
X_FIRST = [1, 0, 3, 2]


def yunet(rows: np.ndarray, size: Size) -> np.ndarray:
    corners, stride = _cells(rows, size)
    middles = (corners + rows[:2]) * stride
    sides = np.exp(np.minimum(rows[2:], MAX_EXPONENT)) * stride
    return _in_unit(middles, sides, size)


def scrfd(rows: np.ndarray, size: Size) -> np.ndarray:
    corners, stride = _cells(rows, size)
    left, top, right, bottom = rows * stride
    x, y = corners * stride
    middles = np.stack([x + (right - left) / 2, y + (bottom - top) / 2])
    return _in_unit(middles, np.stack([left + right, top + bottom]), size)


def ssd(rows: np.ndarray, anchors: np.ndarray, variances: Sequence[float]) -> np.ndarray:
    """`anchors` are (n, 4). Raises GraphError if there are not as many."""
    if rows.shape[1] != len(anchors):
        hint = "`anchors` has a row per box, or levels whose `sizes` and `stride` make as many"
        raise GraphError(f"{len(anchors)} anchors for {rows.shape[1]} boxes", hint=hint)
    place, side = variances
    base = anchors.T.astype(np.float32)
    middles = base[:2] + rows[:2] * place * base[2:]
    sides = base[2:] * np.exp(np.minimum(rows[2:] * side, MAX_EXPONENT))
    return np.concatenate([middles, sides])


def of_anchors(rows: np.ndarray, output: DetectorOutput, size: Size) -> np.ndarray:
    """The boxes of an output with `encoding: anchor`. Raises GraphError."""
    if not output.anchors:
        hint = "give them as `anchors` of this output, or another `encoding`"
        raise GraphError(f"boxes of anchors without `anchors`: `{output.name}`", hint=hint)
    variances = output.rest.get("variances", VARIANCES)
    if not _are_numbers(variances, 2):
        message = f"`variances` of `{output.name}` are [of positions, of sizes]"
        raise GraphError(message, hint=f"such as {list(VARIANCES)}")
    if output.rest.get("order") == Y_FIRST:
        rows = rows[X_FIRST]
    return ssd(rows, anchor_table(output.anchors, size), variances)


def anchor_table(anchors: Sequence[Json], size: Size) -> np.ndarray:
    """(n, 4) in 0..1 of the input, of rows or of levels. Raises GraphError."""
    levels = [_level(entry) for entry in anchors if isinstance(entry, dict)]
    if levels:
        return np.clip(np.concatenate([squares(*level, size) for level in levels]), 0, 1)
    if not all(_are_numbers(entry, 4) for entry in anchors):
        message = "`anchors` are (cx, cy, w, h), or levels with `stride` and `sizes`"
        raise GraphError(message, hint=f"such as [0.5, 0.5, 0.1, 0.1] or {LEVEL}")
    return np.array(anchors, np.float64)


def squares(sizes: Sequence[float], stride: int, size: Size) -> np.ndarray:
    """(n, 4): one square of each of `sizes`, in pixels, at the middle of each cell."""
    height, width = (-(-side // stride) for side in size)
    y, x, side = np.meshgrid(np.arange(height), np.arange(width), np.array(sizes), indexing="ij")
    sides = [(x + 0.5) / width, (y + 0.5) / height, side / size[1], side / size[0]]
    return np.stack([values.ravel() for values in sides], axis=1)


def _level(entry: Mapping[str, Json]) -> tuple[Sequence[float], int]:
    sizes, stride = entry.get("sizes"), entry.get("stride")
    if not isinstance(stride, int) or isinstance(stride, bool) or stride < 1:
        raise GraphError(
            "a level of `anchors` has a whole `stride` and `sizes`", hint=f"such as {LEVEL}"
        )
    if not isinstance(sizes, list) or not sizes or not _are_numbers(sizes, len(sizes)):
        raise GraphError(
            "a level of `anchors` has a whole `stride` and `sizes`", hint=f"such as {LEVEL}"
        )
    return sizes, stride


def _are_numbers(values: Json, count: int) -> bool:
    if not isinstance(values, (list, tuple)) or len(values) != count:
        return False
    return all(type(value) in (int, float) and np.isfinite(value) for value in values)


def _cells(rows: np.ndarray, size: Size) -> tuple[np.ndarray, np.ndarray]:
    """The corners (2, n) and strides (n,) of each box. Raises GraphError."""
    corners, stride = cells(size, STRIDES)
    boxes, rest = divmod(rows.shape[1], len(stride))
    if rest or not boxes:
        height, width = size
        message = f"{rows.shape[1]} boxes are not those of a picture of {height} x {width}"
        raise GraphError(message, hint=f"the cells of strides {list(STRIDES)} are {len(stride)}")
    return np.repeat(corners, boxes, axis=1), np.repeat(stride, boxes)


def _in_unit(middles: np.ndarray, sides: np.ndarray, size: Size) -> np.ndarray:
    unit = np.array([[size[1]], [size[0]]], np.float32)
    return np.concatenate([middles / unit, sides / unit])


def scores_of(decoder: str | None, parts: Mapping[str, np.ndarray]) -> np.ndarray:
    """The scores (classes, n), with the objectness where there is one. Raises GraphError."""
    scores = parts["scores"]
    if decoder == SSD:
        if len(scores) < 2:
            hint = "the first class is the background; without one, use another `decoder`"
            raise GraphError(f"SSD's scores have {len(scores)} class", hint=hint)
        return scores[1:]  # without the background
    if "objectness" not in parts:
        return scores
    if decoder == YUNET:
        return np.sqrt(np.clip(scores, 0, 1) * np.clip(parts["objectness"], 0, 1))
    return scores * parts["objectness"]


BOX_DECODERS: Mapping[str, Callable[[np.ndarray, Size], np.ndarray]] = {YUNET: yunet, SCRFD: scrfd}
