"""Segmentations are painted, and masks laid over each other, as pycocotools does it."""

from __future__ import annotations

import contextlib
import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import RandomState
from pycocotools import mask as coco
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from draws import examples
from npumake.errors import ProjectError
from npumake.evaluate.average_precision import Overlaps, matches_of, precision_of
from npumake.evaluate.outlines import Outline, Region, polygon_mask, region_iou

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
seeds = st.integers(0, 2**32 - 1)


def polygon(random: RandomState, kind: str) -> np.ndarray:
    count = random.randint(3, 9)
    if kind == "whole":
        return random.randint(-5, 65, (count, 2)).astype(float)
    if kind == "doubled":
        return np.repeat(random.randint(0, 50, (count, 2)), 2, axis=0) / 2
    return random.uniform(-10, 70, (count, 2))


@given(seed=seeds, kind=st.sampled_from(["whole", "doubled", "any"]))
@examples(300)
def test_a_polygon_covers_the_pixels_that_pycocotools_says(seed, kind):
    random = RandomState(seed)
    height, width = (int(side) for side in random.randint(1, 60, 2))
    points = polygon(random, kind)
    theirs = coco.decode(coco.frPyObjects([points.ravel().tolist()], height, width))[..., 0]
    assert np.array_equal(polygon_mask(points, (height, width)), theirs.astype(bool))


@given(seed=seeds)
@examples(50)
def test_runs_are_read_as_text_and_as_numbers(seed):
    random = RandomState(seed)
    size = tuple(int(side) for side in random.randint(1, 40, 2))
    mask = random.uniform(size=size) < random.uniform()
    text = coco.encode(np.asfortranarray(mask, np.uint8))["counts"].decode()
    flat = np.flatnonzero(np.diff(np.concatenate([[False], mask.T.ravel()])))
    counts = np.diff(np.concatenate([[0], flat, [mask.size]])).tolist()
    for said in (text, counts):
        region = Outline({"size": list(size), "counts": said}, "").region(size)
        whole = np.zeros(size, bool)
        height, width = region.mask.shape
        whole[region.top : region.top + height, region.left : region.left + width] = region.mask
        assert np.array_equal(whole, mask)


SIDE = 48
CLASSES = 3


def scene(random: RandomState) -> tuple[list[dict], list[dict]]:
    """Truths as polygons, some of them crowds, and guesses near them."""
    truths, guesses = [], []
    for _ in range(random.randint(0, 6)):
        middle, sides = random.uniform(0, SIDE, 2), random.uniform(4, 20, 2)
        label, crowd = int(random.randint(0, CLASSES)), bool(random.uniform() < 0.2)
        truths.append({"points": box(middle, sides), "label": label, "crowd": crowd})
        for _ in range(3):
            moved = box(middle + random.normal(0, 2, 2), sides * random.uniform(0.8, 1.2, 2))
            score = random.randint(0, 10) / 10
            guesses.append({"points": moved, "label": label, "score": score})
    return truths, guesses


def box(middle: np.ndarray, sides: np.ndarray) -> np.ndarray:
    turns = np.array([[-1, -1], [1, -1], [1.3, 0], [1, 1], [-1, 1]])
    return middle + turns * sides / 2


@given(seed=seeds)
@examples(40)
def test_average_precision_of_masks_is_that_of_pycocotools(seed):
    random = RandomState(seed)
    scenes = [scene(random) for _ in range(4)]
    size = (SIDE, SIDE)
    found = []
    for truths, guesses in scenes:
        regions = [Outline([t["points"].ravel().tolist()], "").region(size) for t in truths]
        masks = [Outline([g["points"].ravel().tolist()], "").region(size) for g in guesses]
        labels, true = ([each["label"] for each in side] for side in (guesses, truths))
        crowd = np.array([truth["crowd"] for truth in truths], bool)
        scores = np.array([guess["score"] for guess in guesses])
        overlap = region_iou(masks, regions, crowd)
        given = np.array(labels, int), np.array(true, int), crowd, overlap
        found.append(matches_of(Overlaps(scores, *given)))
    ours = precision_of(found, CLASSES).by_class
    assert ours == pytest.approx(by_pycocotools(scenes), abs=1e-9, nan_ok=True)


def by_pycocotools(scenes: list[tuple[list[dict], list[dict]]]) -> np.ndarray:
    """(10, CLASSES)."""
    truth = [
        {"image_id": n, "category_id": t["label"], "iscrowd": int(t["crowd"])}
        | {"segmentation": [t["points"].ravel().tolist()], "area": 1.0}
        for n, (truths, _) in enumerate(scenes)
        for t in truths
    ]
    found = [
        {"image_id": n, "category_id": g["label"], "score": g["score"]}
        | {"segmentation": coco.merge(coco.frPyObjects([g["points"].ravel().tolist()], SIDE, SIDE))}
        for n, (_, guesses) in enumerate(scenes)
        for g in guesses
    ]
    with contextlib.redirect_stdout(io.StringIO()):
        data = COCO()
        data.dataset = {
            "info": {},
            "images": [{"id": n, "height": SIDE, "width": SIDE} for n in range(len(scenes))],
            "categories": [{"id": n} for n in range(CLASSES)],
            "annotations": [each | {"id": n + 1} for n, each in enumerate(truth)],
        }
        data.createIndex()
        guessed = data.loadRes(found) if found else COCO()
        evaluation = COCOeval(data, guessed, "segm")
        evaluation.evaluate()
        evaluation.accumulate()
    precision = evaluation.eval["precision"][:, :, :, 0, -1]
    return np.where(precision < 0, np.nan, precision).mean(axis=1)


def test_regions_that_do_not_touch_share_nothing():
    one, far = (Region(top, 0, np.ones((2, 2), bool)) for top in (0, 5))
    assert one.shared(far) == 0
    assert region_iou([one], [one, far], np.array([False, True])).tolist() == [[1.0, 0.0]]


@pytest.mark.parametrize(
    ("said", "what"),
    [
        (None, "without `segmentation`"),
        ([], "without `segmentation`"),
        ([[1, 2, 3, 4]], "a polygon is"),
        ([[1, 2, 3, 4, 5, "6"]], "must be a number of pixels"),
        ([[1, 2, 3, 4, 5, float("nan")]], "must be a number of pixels"),
        ([[0, 0, 1e6, 0] * 100], "longer than any picture"),
        ({"size": [4, 5], "counts": [20]}, "a picture that is not 4 x 4"),
        ({"size": [4, 4], "counts": [15]}, "runs of 15 pixels for 16"),
        ({"size": [4, 4], "counts": [-1, 17]}, "lengths of runs"),
        ({"size": [4, 4], "counts": "o" * 99}, "`counts` are not runs"),
        ({"size": [4, 4], "counts": "é"}, "`counts` are not runs"),
        ({"size": [4, 4], "counts": "P"}, "end within a run"),
        ({"size": [4, 4]}, "lengths of runs"),
    ],
)
def test_a_segmentation_that_is_none_is_one_error_at_its_place(said, what):
    with pytest.raises(ProjectError) as caught:
        Outline(said, "instances.json: annotations.3").region((4, 4))
    assert what in caught.value.what
    assert caught.value.hint
    assert caught.value.where == "instances.json: annotations.3"
