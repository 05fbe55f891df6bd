"""Outputs become boxes as their entries say, and as a version of ten lines does it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from detection.test_metadata import FULL, read
from detection.test_split import arrays, graph, hints
from npumake.detection.decode import Detections, Rules, decode, rules_for_map
from npumake.detection.describe import whole_outputs
from npumake.detection.outputs import DetectorOutput, OutputGrid
from npumake.detection.split import split_outputs
from npumake.errors import GraphError

RNG = np.random.default_rng(0)
SIZE = (32, 64)  # height, width


def ten_lines(rows: np.ndarray, rules: Rules) -> list[tuple[int, float]]:
    """(class, score) of what stays, of rows in pixels of SIZE, box by box."""
    best = [(max(row[4:]), int(np.argmax(row[4:])), row[:4]) for row in rows]
    best = sorted((b for b in best if b[0] >= rules.score), key=lambda b: -b[0])
    kept: list[tuple[float, int, np.ndarray]] = []
    for score, kind, (x, y, w, h) in best[: rules.candidates or None]:
        box = np.array([x - w / 2, y - h / 2, x + w / 2, y + h / 2])
        for _, other, have in kept:
            low, high = np.maximum(box[:2], have[:2]), np.minimum(box[2:], have[2:])
            both = np.prod(np.maximum(high - low, 0))
            union = w * h + np.prod(have[2:] - have[:2]) - both
            if both > rules.iou * union and (kind == other or not rules.class_aware):
                break
        else:
            kept.append((score, kind, box))
    return [(kind, score) for score, kind, _ in kept[: rules.max_boxes]]


def rows(count: int = 80) -> np.ndarray:
    boxes = RNG.random((count, 4)) * [64, 32, 20, 20]
    return np.concatenate([boxes, RNG.random((count, 3))], 1).astype(np.float32)


def flat(values: np.ndarray) -> tuple[dict[str, np.ndarray], list[DetectorOutput]]:
    shape = (1, 7, len(values))
    dims = (("batch", 1), ("num_features", 7), ("num_boxes", len(values)))
    entry = DetectorOutput("out", shape, "detection", dims, encoding="direct", normalized=False)
    return {"out": values.T[None].copy()}, [entry]


@pytest.mark.parametrize("class_aware", [False, True])
@pytest.mark.parametrize("candidates", [0, 30])
@pytest.mark.parametrize("most", [5, 300])
def test_it_finds_what_ten_lines_find(class_aware, candidates, most):
    values = rows()
    rules = Rules(0.6, 0.3, candidates, most, class_aware)
    found = decode(*flat(values), SIZE, rules)
    expected = ten_lines(values, rules)
    assert len(expected) >= 5
    assert list(zip(found.classes, found.scores, strict=True)) == expected


def test_boxes_are_in_0_to_1_of_the_input():
    values = np.array([[32, 16, 16, 8, 0.9, 0, 0]], np.float32)
    found = decode(*flat(values), SIZE)
    np.testing.assert_allclose(found.boxes, [[24 / 64, 12 / 32, 40 / 64, 20 / 32]])
    made, (entry,) = flat(values / [64, 32, 64, 32, 1, 1, 1])
    again = decode(made, [replace(entry, normalized=True)], SIZE)
    np.testing.assert_allclose(again.boxes, found.boxes, rtol=1e-6)


def same(a: Detections, b: Detections) -> None:
    np.testing.assert_array_equal(a.classes, b.classes)
    np.testing.assert_allclose(a.boxes, b.boxes, atol=1e-6)
    np.testing.assert_allclose(a.scores, b.scores, atol=1e-6)


@pytest.mark.parametrize("strides", [False, True])
def test_channels_may_be_first_or_last_and_codes_on_a_grid(strides):
    whole = graph()
    cut, outputs = split_outputs(whole, hints(strides=strides))
    made = arrays(cut)
    expected = decode(made, outputs, (64, 64), Rules(0.3))

    def turned(entry: DetectorOutput) -> DetectorOutput:
        order = [0, *range(2, len(entry.shape)), 1]
        values = made[entry.name].transpose(order)
        scale = float(np.abs(values).max()) / 2**30
        made[entry.name] = np.rint(values / scale).astype(np.int64) + 5
        dims = tuple(entry.dshape[axis] for axis in order)
        grid = OutputGrid((scale,), (5,), dtype="int32")
        children = tuple(map(turned, entry.outputs))
        return replace(entry, shape=values.shape, dshape=dims, quantization=grid, outputs=children)

    parts = [
        replace(e, outputs=tuple(map(turned, e.outputs))) if e.outputs else turned(e)
        for e in outputs
    ]
    same(decode(made, parts, (64, 64), Rules(0.3)), expected)


def test_a_trailing_padding_is_left_out():
    made, (entry,) = flat(rows())
    padded = replace(entry, shape=(*entry.shape, 1), dshape=(*entry.dshape, ("padding", 1)))
    same(
        decode({"out": made["out"][..., None]}, [padded], SIZE),
        decode(made, [entry], SIZE),
    )


def test_an_activation_is_done_only_where_it_is_required():
    logits = RNG.normal(size=(1, 3, 8)).astype(np.float32)
    boxes = (RNG.random((1, 4, 8)) * 0.2).astype(np.float32)
    made = {"b": boxes, "s": logits}
    b = DetectorOutput("b", (1, 4, 8), "boxes", encoding="direct", normalized=True)
    s = DetectorOutput("s", (1, 3, 8), "scores")
    every = Rules(score=-9, iou=1)
    plain = decode(made, [b, s], SIZE, every)
    np.testing.assert_allclose(np.sort(plain.scores), np.sort(logits[0].max(0)))
    done = decode(made, [b, replace(s, activation_required="sigmoid")], SIZE, every)
    np.testing.assert_allclose(done.scores, 1 / (1 + np.exp(-plain.scores)), rtol=1e-6)
    soft = decode(made, [b, replace(s, activation_required="softmax")], SIZE, every)
    expected = np.exp(logits[0]) / np.exp(logits[0]).sum(0)
    np.testing.assert_allclose(soft.scores, np.sort(expected.max(0))[::-1], rtol=1e-6)
    o = DetectorOutput("o", (1, 1, 8), "objectness")
    times = decode({**made, "o": np.full((1, 1, 8), 0.5, np.float32)}, [b, s, o], SIZE, every)
    np.testing.assert_allclose(np.sort(times.scores), np.sort(plain.scores * 0.5))


def test_rows_of_an_end_to_end_model_are_taken_as_they_are():
    rows = np.array([[[0, 0, 64, 32, 0.9, 2], [0, 0, 64, 32, 0.8, 1], [0, 0, 1, 1, 0.1, 0]]])
    entry = DetectorOutput("d", (1, 3, 6), "detections", normalized=False)
    found = decode({"d": rows.astype(np.float32)}, [entry], SIZE)
    assert found.classes.tolist() == [2, 1]
    np.testing.assert_array_equal(found.boxes, [[0, 0, 1, 1]] * 2)


def test_a_map_counts_every_box_and_the_metadata_says_how_they_rival():
    assert rules_for_map(read(FULL)) == Rules(0.001, 0.7, 0, 300, class_aware=False)
    assert rules_for_map(read(FULL | {"nms": "class_aware"})).class_aware


@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        ([], "the outputs hold no boxes"),
        ([DetectorOutput("b", (1, 4, 8), "boxes")], "the outputs hold no scores"),
        (
            [
                DetectorOutput("b", (1, 4, 8), "boxes", encoding="anchor"),
                DetectorOutput("b", (1, 4, 8), "scores"),
            ],
            "boxes of anchors without `anchors`",
        ),
        (
            [DetectorOutput("x", (1, 4, 8), "boxes"), DetectorOutput("b", (1, 4, 8), "scores")],
            "no output `x` among",
        ),
        ([DetectorOutput("b", (1, 4, 9), "detection")], "has shape [1, 4, 8], not [1, 4, 9]"),
    ],
)
def test_outputs_that_do_not_decode_are_one_error(outputs, message):
    with pytest.raises(GraphError) as caught:
        decode({"b": np.zeros((1, 4, 8), np.float32)}, outputs, SIZE)
    assert message in caught.value.what


def test_the_whole_head_is_one_detection():
    (whole, protos) = whole_outputs(graph(), hints())
    assert (whole.type, whole.name, protos.type) == ("detection", "output0", "protos")


def test_a_float_model_lacks_the_padding_that_a_converter_describes():
    made, (entry,) = flat(rows())
    padded = replace(entry, shape=(*entry.shape, 1), dshape=(*entry.dshape, ("padding", 1)))
    same(decode(made, [padded], SIZE), decode(made, [entry], SIZE))
