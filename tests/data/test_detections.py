"""Detections read from synap_cli_od's JSON and with_detections over their image."""

import json

import numpy as np
import pytest

from npumake.data.detections import (
    FRAME,
    Detection,
    detections,
    mask_colors,
    table,
    with_detections,
)
from npumake.errors import ProjectError

CAR = {
    "bounding_box": {"origin": {"x": 8, "y": 16}, "size": {"x": 20, "y": 12}},
    "class_index": 2,
    "confidence": 0.7,
    "landmarks": {"points": [{"x": 12, "y": 20}]},
}
MASKED = {**CAR, "mask": {"width": 2, "height": 1, "data": [1, -1]}}
GRAY = np.full((32, 40, 3), 100, np.uint8)


def told(*items, head="Input image: (w = 40, h = 32)\n"):
    return head + json.dumps({"items": items})


def test_what_stands_before_the_json_is_skipped():
    (found,) = detections(told(CAR))
    assert (found.box, found.class_index, found.landmarks) == ((8, 16, 20, 12), 2, ((12, 20),))


def test_a_frame_is_two_pixels_thick_along_the_box():
    made = np.asarray(with_detections(GRAY, detections(told({**CAR, "landmarks": {"points": []}}))))
    framed = (made == FRAME).all(-1)[16:29, 8:29]
    inside = np.zeros_like(framed)
    inside[2:-2, 2:-2] = True
    assert framed[~inside].all()
    assert not framed[inside].any()


def test_a_landmark_is_a_small_square():
    made = np.asarray(with_detections(GRAY, detections(told(CAR))))
    assert (made[20, 12:15] == FRAME).all()


def test_a_mask_adds_its_color_inside_the_box_only():
    made = np.asarray(with_detections(GRAY, detections(told(MASKED)), {2: (200, 0, 50)})).astype(
        int
    )
    changed = made - GRAY
    assert changed[24, 14].tolist() == [155, 0, 50]
    assert changed[24, 24].tolist() == [0, 0, 0]
    assert changed[30:, :].max() == 0


def test_a_class_has_the_same_color_every_time_and_another_than_its_neighbor():
    def color(index):
        return np.asarray(
            with_detections(GRAY, detections(told({**MASKED, "class_index": index})))
        )[24, 14]

    assert (color(3) == color(3)).all()
    assert (color(3) != color(4)).any()


def test_a_line_for_each_detection():
    _, line = table(detections(told(CAR)))
    assert line.split() == ["0", "0.70", "2", "8,", "16", "20,", "12", "12,20"]


def test_colors_of_masks_are_blue_green_red():
    assert mask_colors('{"2": [50, 0, 200]}') == {2: (200, 0, 50)}


WRONG = {
    "no JSON in the input": "",
    "not JSON": "{" * 9,
    "no list of `items`": "{}",
    "the JSON has no list": '{"items": 3}',
    "not JSON: maximum": '{"items": ' + "[" * 100_000,
    "without `bounding_box.origin.x`": told({}),
    "without `class_index`": told({"bounding_box": CAR["bounding_box"]}),
    "a mask of 2x2 without": told({**CAR, "mask": {"width": 2, "height": 2, "data": [1]}}),
    "`inf` is not a number": told({**CAR, "confidence": 1e400}),
    "`1e+30` is not a number": told({**CAR, "confidence": 1e30}),
    "`x` is not a number": told({**CAR, "class_index": "x"}),
    "negative size": told(
        {**CAR, "bounding_box": {"origin": {"x": 0, "y": 0}, "size": {"x": -1, "y": 1}}}
    ),
    "is not a list": told({**CAR, "landmarks": {"points": 3}}),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_no_detection_is_refused(what):
    with pytest.raises(ProjectError) as caught:
        detections(WRONG[what])
    assert what in caught.value.what


@pytest.mark.parametrize("text", ["[]", '{"x": [1, 2, 3]}', '{"1": [1, 2]}', '{"1": [1, 2, 256]}'])
def test_what_is_no_color_is_refused(text):
    with pytest.raises(ProjectError):
        mask_colors(text)


def test_a_frame_is_named_by_its_label_and_its_text_stays_in_the_picture() -> None:
    """Another name draws other pixels, beside the frame and below the upper border."""
    item = Detection(1, 0.5, (4, 2, 40, 30))
    plain = np.zeros((48, 64, 3), np.uint8)
    bare, named, other = (
        np.asarray(with_detections(plain, [item], labels=labels))
        for labels in ((), ("cat", "dog"), ("cat", "bird"))
    )
    assert not np.array_equal(named, other)
    assert not np.array_equal(named, bare)
    inside = np.abs(named.astype(int) - plain)[5:30, 8:42]
    assert inside.any()
    unlabelled = with_detections(plain, [Detection(7, 0.5, (4, 20, 40, 20))], labels=("cat",))
    assert np.asarray(unlabelled).any()
