"""Heads decoded on the host: each formula of a demo, cell by cell, against the vectorized one."""

from __future__ import annotations

import math

import numpy as np
import pytest

from npumake.detection.cell_decoders import CELL_DECODERS, SSD
from npumake.detection.decode import Rules, decode
from npumake.detection.outputs import DetectorOutput
from npumake.errors import GraphError

SIZE = (32, 64)  # height, width
STRIDES = (8, 16, 32)
CELLS = [(x, y, s) for s in STRIDES for y in range(SIZE[0] // s) for x in range(SIZE[1] // s)]
RANDOM = np.random.default_rng(0)


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def yolox(row: np.ndarray, x: int, y: int, s: int) -> tuple[list[float], float]:
    cx, cy = (row[0] + x) * s, (row[1] + y) * s
    return [cx, cy, math.exp(row[2]) * s, math.exp(row[3]) * s], row[4] * row[5]


def nanodet(row: np.ndarray, x: int, y: int, s: int) -> tuple[list[float], float]:
    sides = []
    for bins in row[1:].reshape(4, 8):
        weights = np.exp(bins)
        sides.append(float(weights @ np.arange(8) / weights.sum()) * s)
    x1, y1, x2, y2 = x * s - sides[0], y * s - sides[1], x * s + sides[2], y * s + sides[3]
    return [(x1 + x2) / 2, (y1 + y2) / 2, x2 - x1, y2 - y1], row[0]


def fastestdet(row: np.ndarray, x: int, y: int, s: int) -> tuple[list[float], float]:
    cx, cy = (math.tanh(row[1]) + x) * s, (math.tanh(row[2]) + y) * s
    box = [cx, cy, sigmoid(row[3]) * SIZE[1], sigmoid(row[4]) * SIZE[0]]
    return box, row[0] ** 0.6 * row[5] ** 0.4


# decoder: its formula, channels of a row, cells
HEADS = {
    "yolox": (yolox, 6, CELLS),
    "nanodet": (nanodet, 33, CELLS),
    "fastestdet": (fastestdet, 6, [cell for cell in CELLS if cell[2] == 16]),
}


def output(decoder: str, shape: tuple[int, ...], kind: str = "detection") -> DetectorOutput:
    last = {"detection": "num_features", "boxes": "box_coords", "scores": "num_classes"}[kind]
    dims = tuple(zip(("batch", "num_boxes", last), shape, strict=True))
    encoding = "direct" if kind == "boxes" else None
    return DetectorOutput(kind, shape, kind, dims, decoder=decoder, encoding=encoding)


@pytest.mark.parametrize("name", HEADS)
def test_each_cell_is_decoded_as_the_demo_does(name: str) -> None:
    formula, channels, cells = HEADS[name]
    rows = RANDOM.uniform(0.05, 0.95, (len(cells), channels)).astype(np.float32)
    found = CELL_DECODERS[name](rows.T, SIZE)
    expected = [formula(row, *cell) for row, cell in zip(rows, cells, strict=True)]
    boxes = np.array([box for box, _ in expected]).T / np.array([[64], [32], [64], [32]])
    np.testing.assert_allclose(found["boxes"], boxes, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found["scores"][0], [score for _, score in expected], rtol=1e-4)


def test_every_decoder_has_its_formula() -> None:
    assert set(HEADS) == set(CELL_DECODERS)


@pytest.mark.parametrize("name", HEADS)
def test_a_detection_comes_out_where_it_is(name: str) -> None:
    _, channels, cells = HEADS[name]
    rows = np.full((1, len(cells), channels), 1e-6, np.float32)
    rows[0, 3, [0, 4, 5] if channels == 6 else [0]] = 1
    found = decode({"detection": rows}, [output(name, rows.shape)], SIZE, Rules(score=0.5))
    assert len(found.scores) == 1
    assert found.scores[0] == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize("name", HEADS)
def test_boxes_of_another_picture_are_refused(name: str) -> None:
    rows = np.zeros((HEADS[name][1], 13), np.float32)
    with pytest.raises(GraphError, match=r"13 (boxes|cells)"):
        CELL_DECODERS[name](rows, SIZE)


def test_the_first_class_of_ssd_is_background() -> None:
    boxes = np.array([[[0.1, 0.2, 0.5, 0.6], [0.0, 0.0, 1.0, 1.0]]], np.float32)
    scores = np.array([[[0.1, 0.9], [0.95, 0.05]]], np.float32)
    outputs = [output(SSD, (1, 2, 4), "boxes"), output(SSD, (1, 2, 2), "scores")]
    found = decode({"boxes": boxes, "scores": scores}, outputs, SIZE)
    np.testing.assert_allclose(found.boxes, [[0.1, 0.2, 0.5, 0.6]], atol=1e-6)
    assert (found.classes.tolist(), found.scores.tolist()) == ([0], [pytest.approx(0.9)])


def test_objectness_multiplies_the_scores() -> None:
    rows = np.array([[[16, 16, 8, 8, 0.8, 0.1, 0.9], [40, 16, 8, 8, 0.1, 0.9, 0.9]]], np.float32)
    dims = (("batch", 1), ("num_boxes", 2), ("num_features", 7))
    whole = DetectorOutput(
        "y", (1, 2, 7), "detection", dims, encoding="direct", score_format="obj_x_class"
    )
    found = decode({"y": rows}, [whole], SIZE)
    assert (found.classes.tolist(), found.scores.tolist()) == ([1], [pytest.approx(0.72)])
