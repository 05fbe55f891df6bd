"""The small DETR of benchmarks/detr: its scenes, its scores, and a build of its graph."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import npumake
from workspaces import REPO

sys.path.insert(0, str(REPO / "benchmarks" / "detr"))

import measure
from digit_scenes import CALIBRATION, CLASSES, SIDE, TEST, TRAIN, Scene, scenes


def outputs_of(scene: Scene) -> tuple[np.ndarray, np.ndarray]:
    """What a perfect model predicts: a query for each slot."""
    logits = 20 * np.eye(CLASSES + 1, dtype=np.float32)[scene.labels]
    return logits[None], scene.boxes[None]


@pytest.mark.parametrize("part", [TEST, CALIBRATION, TRAIN])
def test_a_scene_follows_from_its_seed(part: int) -> None:
    few, more = scenes(part, 3), scenes(part, 6)
    for scene, again in zip(few, more, strict=False):
        assert all(map(np.array_equal, scene, again))
    assert len({scene.pixels.tobytes() for scene in more}) == len(more)


def test_every_bright_pixel_is_in_a_box_and_every_box_has_some() -> None:
    for scene in scenes(TEST, 40):
        pixels = scene.pixels[0].copy()
        for left, top, right, bottom in measure.truths(scene).boxes.astype(int):
            assert pixels[top:bottom, left:right].any()
            pixels[top:bottom, left:right] = 0
        assert not pixels.any()
        assert pixels.shape == (SIDE, SIDE)


@pytest.mark.slow
def test_a_perfect_model_scores_100_and_one_of_other_classes_0() -> None:
    test = scenes(TEST, 40)
    right = [measure.matches(outputs_of(scene), scene) for scene in test]
    other = [scene._replace(labels=(scene.labels + 1) % CLASSES) for scene in test]
    wrong = [
        measure.matches(outputs_of(false), scene) for false, scene in zip(other, test, strict=True)
    ]
    assert measure.scores(right) == (100, 100)
    assert measure.scores(wrong) == (0, 0)
    assert not measure.errors(right, right).any()


@pytest.mark.slow
def test_the_model_builds_and_detects_what_the_float_model_detects() -> None:
    pixels = np.stack([scene.pixels[None] for scene in scenes(CALIBRATION, 8)])
    sections = {"inputs": measure.INPUT, "comparison": {"samples": 1}}
    model = npumake.quantize(
        measure.MODEL, pixels, target="ara240", method="max", sections=sections
    )
    test = scenes(TEST, 20)
    before, after = (
        measure.float_matches(measure.MODEL.read_bytes(), test),
        measure.compiled_matches(model, test),
    )
    assert measure.scores(after).map50 > 0.9 * measure.scores(before).map50 > 0
