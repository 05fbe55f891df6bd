"""What a model paints: the class of every place and the masks of boxes, over the same picture."""

from __future__ import annotations

import base64
import io

import numpy as np
import pytest
from PIL import Image

from npumake import digest
from npumake.report.findings import Findings
from npumake.report.overlays import class_map, hue, mask_map, overlay_of
from npumake.report.page import page
from npumake.report.sample_views import SampleComparison, SampleView, sample_view
from report.browser import opened
from report.pages import chain, findings_of

CODES = np.array([[0, 0, 1], [0, 2, 1]])
SCORES = np.eye(4, dtype=np.float32)[CODES]  # (2, 3, 4): the last class is nowhere


@pytest.mark.parametrize(
    "given",
    [
        SCORES[None],
        np.moveaxis(SCORES, 2, 0)[None],
        CODES[None].astype(np.int32),
        CODES[None, None].astype(np.uint8),
    ],
    ids=["NHWC", "NCHW", "codes", "codes of one channel"],
)
def test_the_class_of_every_place_is_the_highest(given):
    assert np.array_equal(class_map({"y": given}, (16, 24)), CODES)


@pytest.mark.parametrize(
    "arrays",
    [
        {"y": np.zeros((1, 2, 3, 3), np.float32)},
        {"y": np.zeros((1, 1, 2, 3), np.float32)},
        {"y": np.zeros((1, 85, 2, 4), np.float32)},
        {"y": np.zeros((1, 4, 1, 1), np.float32)},
        {"y": np.zeros((1, 10), np.float32)},
        {"y": SCORES[None], "z": SCORES[None]},
    ],
    ids=["a picture", "a depth", "other proportions", "one place", "a row", "two outputs"],
)
def test_what_is_no_map_is_not_painted(arrays):
    assert class_map(arrays, (16, 24)) is None


def test_a_head_is_coarser_than_a_map():
    assert class_map({"y": SCORES[None]}, (32, 48)) is None


def pixels(uri):
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(uri.partition(",")[2]))))


def test_the_best_of_two_masks_covers_the_other_and_the_ground_shows():
    masks = np.array([[[1, 1, 0]], [[0, 1, 1]], [[0, 0, 0]]], bool)
    found = mask_map(masks, np.array([5, 1, 0]))
    assert found.tolist() == [[5, 5, 1]]
    laid = overlay_of(np.where(found == 1, -1, found), ["a", "b"])
    assert laid.areas == (("5", 0.6667),)
    assert pixels(laid.map)[0, :, 3].tolist() == [150, 150, 0]


def test_areas_are_by_name_the_largest_first():
    assert overlay_of(CODES, ["road", "sky"]).areas == (
        ("road", 0.5),
        ("sky", 0.3333),
        ("2", 0.1667),
    )


@pytest.mark.slow
def test_both_maps_lie_on_the_page_in_the_colours_of_their_names(tmp_path):
    labels = ["road", "sky", "Bäume 🌳"]
    png = overlay_of(np.zeros((2, 3), np.int64), labels).map
    sides = (
        SampleView(painted=overlay_of(CODES, labels)),
        SampleView(painted=overlay_of(CODES * 0, labels)),
    )
    sample = SampleComparison("one", png, {"y": 0.5}, *sides)
    found = Findings({**findings_of(chain(10)).document, "samples": digest.plain([sample])})
    script = """const shown = (at) => [...document.querySelectorAll(at)];
      return [shown('.card image').map((each) => each.getAttribute('href')),
        shown('.card li').map((each) => each.textContent), shown('.card .apart').length,
        ['road', 'Bäume 🌳'].map(hue)];"""
    (images, rows, apart, hues), console = opened(page({"n": found}, {}).text, tmp_path, script)
    assert console == []
    assert images == [png, sides[0].painted.map, png, sides[1].painted.map]
    assert [row.split()[0] for row in rows] == ["road", "sky", "Bäume", "road"]
    assert apart == 1
    assert hues == [f"hsl({hue(name)} 85% 55%)" for name in ("road", "Bäume 🌳")]


@pytest.mark.slow
def test_boxes_are_counted_of_a_detector_and_of_no_other_model(tmp_path):
    one = SampleView(boxes=((0.0, 0.0, 1.0, 1.0, 0.5, "disc"),))
    pairs = ((SampleView(boxes=()), one), (SampleView(), SampleView()))
    samples = [SampleComparison(str(n), None, {"y": 0.5}, *pair) for n, pair in enumerate(pairs)]
    found = Findings({**findings_of(chain(10)).document, "samples": digest.plain(samples)})
    script = """return [...document.querySelectorAll('.card .sides > div')]
        .map((each) => each.firstChild.textContent);"""
    told, console = opened(page({"n": found}, {}).text, tmp_path, script)
    assert console == []
    assert told == ["float: 0 boxes", "int8: 1 box", "float", "int8"]


def test_only_what_decodes_to_boxes_has_a_list_of_them():
    assert sample_view({"y": np.zeros((1, 4, 6, 6), np.float32)}, None, (), (1, 1)).boxes is None
