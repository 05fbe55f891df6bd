"""Heads of several outputs: each formula of a demo, box by box, against the vectorized one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from npumake.detection.anchors import BOX_DECODERS, SCRFD, YUNET, anchor_table
from npumake.detection.decode import Rules, decode
from npumake.detection.metadata import read_metadata
from npumake.digest import Json, canonical
from npumake.errors import GraphError
from npumake.recognition.families import family_of
from recognized_models import Shape, facts

SIZE = (64, 96)  # height, width
STRIDES = (8, 16, 32)
CELLS = [(x, y, s) for s in STRIDES for y in range(SIZE[0] // s) for x in range(SIZE[1] // s)]
RANDOM = np.random.default_rng(0)
Box = list[float]


def yunet(row: np.ndarray, x: int, y: int, s: int) -> Box:
    cx, cy, w, h = (x + row[0]) * s, (y + row[1]) * s, math.exp(row[2]) * s, math.exp(row[3]) * s
    return [cx, cy, w, h]


def scrfd(row: np.ndarray, x: int, y: int, s: int) -> Box:
    x1, y1, x2, y2 = x * s - row[0] * s, y * s - row[1] * s, x * s + row[2] * s, y * s + row[3] * s
    return [(x1 + x2) / 2, (y1 + y2) / 2, x2 - x1, y2 - y1]


FORMULAS = {YUNET: (yunet, 1), SCRFD: (scrfd, 2)}  # and boxes of a cell


@pytest.mark.parametrize("name", FORMULAS)
def test_each_box_is_decoded_as_the_demo_does(name: str) -> None:
    formula, per_cell = FORMULAS[name]
    cells = [cell for cell in CELLS for _ in range(per_cell)]
    rows = RANDOM.uniform(0.05, 0.95, (len(cells), 4)).astype(np.float32)
    expected = np.array([formula(row, *cell) for row, cell in zip(rows, cells, strict=True)]).T
    unit = np.array([[96], [64], [96], [64]])
    np.testing.assert_allclose(BOX_DECODERS[name](rows.T, SIZE), expected / unit, rtol=1e-4)


def test_every_decoder_has_its_formula() -> None:
    assert set(FORMULAS) == set(BOX_DECODERS)


def test_an_anchor_of_a_level_is_a_square_at_the_middle_of_its_cell() -> None:
    levels = [{"stride": 32, "sizes": [16, 48]}]
    table = anchor_table(levels, SIZE)
    assert len(table) == 2 * 3 * 2
    np.testing.assert_allclose(table[3], [1.5 / 3, 0.5 / 2, 48 / 96, 48 / 64])


# family: outputs of a picture of 96 x 64, in NCHW
def scales(kinds: Mapping[str, int], per_cell: int, rank: int, join: str) -> dict[str, Shape]:
    counts = {s: per_cell * SIZE[0] // s * (SIZE[1] // s) for s in STRIDES}
    lead = (1,) * (rank - 2)
    return {f"{kind}{join}{s}": (*lead, counts[s], w) for kind, w in kinds.items() for s in STRIDES}


PRIORS = sum(2 * SIZE[0] // s * (SIZE[1] // s) for s in STRIDES)
MODELS: dict[str, dict[str, Shape]] = {
    "YuNet": scales({"cls": 1, "obj": 1, "bbox": 4, "kps": 10}, 1, 3, "_"),
    "SCRFD": scales({"score": 1, "bbox": 4, "kps": 10}, 2, 2, ""),
    "RetinaFace": {"loc": (1, PRIORS, 4), "conf": (1, PRIORS, 2), "landms": (1, PRIORS, 10)},
    "UltraFace": {"scores": (1, 4420, 2), "boxes": (1, 4420, 4)},
}
PICTURES = {"UltraFace": (240, 320)}


@pytest.mark.parametrize("name", MODELS)
def test_a_face_comes_out_where_its_cell_is(name: str) -> None:
    """The metadata that `new` proposes decodes the outputs of a model that is sure of one box."""
    size = PICTURES.get(name, SIZE)
    found, family = family_of(facts((1, 3, *size), MODELS[name]))
    assert (found, family.doubts) == (name, ())
    metadata = read_metadata(canonical(family.metadata), "edgefirst.json")
    arrays = {key: np.full(shape, 0, np.float32) for key, shape in MODELS[name].items()}
    sure = {"YuNet": ("cls_16", "obj_16"), "SCRFD": ("score16",)}.get(name)
    for key in sure or ():
        arrays[key][..., 0, 0] = 1
    if name == "SCRFD":
        arrays["bbox16"][0] = 1  # half a box of 32 pixels around the corner of the first cell
    for key in ("conf", "scores"):
        if key in arrays:
            arrays[key][0, :, 0] = 1
            arrays[key][0, 0] = (0.1, 0.9)
    seen = decode(arrays, metadata.outputs, size, Rules(score=0.5))
    assert len(seen.scores) == 1
    assert seen.classes.tolist() == [0]
    height, width = size
    x1, y1, x2, y2 = seen.boxes[0] * [width, height, width, height]
    expected = {
        "YuNet": (-8, -8, 8, 8),
        "SCRFD": (-16, -16, 16, 16),
        "RetinaFace": (-4, -4, 12, 12),
        "UltraFace": (-1, -1, 9, 9),
    }[name]
    assert (x1, y1, x2, y2) == pytest.approx(expected, abs=0.1)


def test_the_score_of_yunet_is_the_root_of_both() -> None:
    _, family = family_of(facts((1, 3, *SIZE), MODELS["YuNet"]))
    metadata = read_metadata(canonical(family.metadata), "edgefirst.json")
    arrays = {key: np.zeros(shape, np.float32) for key, shape in MODELS["YuNet"].items()}
    arrays["cls_8"][0, 5, 0], arrays["obj_8"][0, 5, 0] = 0.81, 0.64
    (score,) = decode(arrays, metadata.outputs, SIZE, Rules(score=0.5)).scores
    assert score == pytest.approx(0.72)


def anchored(anchors: list[Json], rows: int, **rest: Json) -> Json:
    outputs = [
        {
            "name": "b",
            "type": "boxes",
            "decoder": "ssd",
            "encoding": "anchor",
            "shape": [1, rows, 4],
            "dshape": [{"batch": 1}, {"num_boxes": rows}, {"box_coords": 4}],
            "anchors": anchors,
            **rest,
        },
        {
            "name": "s",
            "type": "scores",
            "decoder": "ssd",
            "shape": [1, rows, 2],
            "dshape": [{"batch": 1}, {"num_boxes": rows}, {"num_classes": 2}],
        },
    ]
    return {"schema_version": 2, "outputs": outputs}


def test_a_table_of_anchors_and_y_first_are_read() -> None:
    document = anchored([[0.5, 0.4, 0.2, 0.1]], 1, order="yxhw", variances=[0.1, 0.2])
    outputs = read_metadata(canonical(document), "m").outputs
    arrays = {
        "b": np.array([[[2.0, 1.0, 0.0, 0.0]]], np.float32),
        "s": np.array([[[0, 1]]], np.float32),
    }
    (box,) = decode(arrays, outputs, SIZE).boxes
    np.testing.assert_allclose(box, [0.42, 0.37, 0.62, 0.47], atol=1e-6)


@pytest.mark.parametrize(
    ("anchors", "rest", "what"),
    [
        ([], {}, "without `anchors`"),
        ([[0.5, 0.5, 0.1, 0.1]], {}, "1 anchors for 2 boxes"),
        ([[0.5, 0.5, 0.1]], {}, "are (cx, cy, w, h)"),
        ([[0.5, 0.5, 0.1, True]], {}, "are (cx, cy, w, h)"),
        ([{"stride": 0, "sizes": [1]}], {}, "whole `stride`"),
        ([{"stride": 8, "sizes": []}], {}, "whole `stride`"),
        ([[0.5, 0.5, 0.1, 0.1]] * 2, {"variances": [0.1]}, "`variances`"),
    ],
)
def test_anchors_that_do_not_fit_are_an_error(
    anchors: list[Json], rest: dict[str, Json], what: str
) -> None:
    outputs = read_metadata(canonical(anchored(anchors, 2, **rest)), "m").outputs
    arrays = {"b": np.zeros((1, 2, 4), np.float32), "s": np.ones((1, 2, 2), np.float32)}
    with pytest.raises(GraphError, match=what.replace("(", r"\(").replace(")", r"\)")):
        decode(arrays, outputs, SIZE)


@pytest.mark.parametrize("name", BOX_DECODERS)
def test_boxes_of_another_picture_are_refused(name: str) -> None:
    with pytest.raises(GraphError, match="13 boxes"):
        BOX_DECODERS[name](np.zeros((4, 13), np.float32), SIZE)


def test_the_anchors_of_a_tflite_decode_its_raw_head() -> None:
    outputs = {"boxes": (1, 3, 4), "scores": (1, 3, 5)}
    table = ((0.5, 0.5, 0.2, 0.4), (0.2, 0.3, 0.1, 0.1), (0.8, 0.5, 0.1, 0.1))
    model = replace(facts((1, 300, 300, 3), outputs, file="m.tflite"), anchors=table)
    found, family = family_of(model)
    assert (found, family.doubts) == ("SSD", ())
    metadata = read_metadata(canonical(family.metadata), "edgefirst.json")
    arrays = {key: np.zeros(shape, np.float32) for key, shape in outputs.items()}
    arrays["scores"][0, 1, 3] = 0.8
    arrays["boxes"][0, 1, 0] = 1  # down, by a tenth of the height
    seen = decode(arrays, metadata.outputs, (300, 300))
    np.testing.assert_allclose(seen.boxes, [[0.15, 0.26, 0.25, 0.36]], atol=1e-6)
    assert seen.classes.tolist() == [2]
