"""The scenes of shapes-detector are what their seeds say; the committed files come from them."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from PIL import Image

PROJECT = Path(__file__).parents[2] / "projects" / "shapes-detector"
SCENES = runpy.run_path(str(PROJECT / "scenes.py"))
SIZE, scene = SCENES["SIZE"], SCENES["scene"]

DIGEST = "import hashlib, scenes; print(hashlib.sha256(scenes.scene(7).image).hexdigest())"


@pytest.fixture(scope="module")
def painted():
    return [scene(seed) for seed in range(40)]


def test_another_process_paints_the_same_pixels():
    command = [sys.executable, "-c", DIGEST]
    runs = [subprocess.run(command, cwd=PROJECT, capture_output=True, check=True) for _ in range(2)]
    assert runs[0].stdout == runs[1].stdout


def test_what_is_tested_calibrated_and_learned_shares_no_scene():
    test, calibration = SCENES["TEST"], SCENES["CALIBRATION"]
    assert len(test) >= 300
    assert test.stop <= calibration.start < calibration.stop <= SCENES["TRAIN"]


def test_a_box_is_the_smallest_around_what_is_visible(painted):
    for image in painted:
        for (left, top, right, bottom), mask in zip(image.boxes, image.masks, strict=True):
            rows, columns = np.nonzero(mask)
            assert (left, right) == (columns.min(), columns.max() + 1)
            assert (top, bottom) == (rows.min(), rows.max() + 1)


def test_no_pixel_belongs_to_two_shapes_and_all_five_classes_occur(painted):
    assert all(image.masks.sum(axis=0).max() == 1 for image in painted)
    assert {int(label) for image in painted for label in image.labels} == set(range(5))


@pytest.mark.parametrize("label", range(5))
def test_a_distance_grows_by_one_per_pixel_and_is_r_at_the_furthest_point(label):
    """The hull of every shape reaches the circle of radius r, and no further."""
    y, x = np.mgrid[-60:60:0.25, -60:60:0.25]
    distance = SCENES["SHAPES"][label](x, y, 40.0)
    furthest = np.hypot(x, y)[distance <= 0].max()
    assert 39.0 <= furthest <= 40.1
    steps = np.abs(np.diff(distance, axis=1)) / 0.25
    assert steps.max() <= 1.0 + 1e-6


def test_the_samples_are_the_calibration_scenes_as_jpeg():
    """JPEG at 92 moves a pixel by less than 6 on average: the noise."""
    paths = sorted((PROJECT / "samples").iterdir())
    assert len(paths) == len(SCENES["CALIBRATION"])
    for path, seed in zip(paths, SCENES["CALIBRATION"], strict=True):
        with Image.open(path) as opened:
            pixels = np.asarray(opened).astype(int)
        assert np.abs(pixels - scene(seed).image).mean() < 6


def test_the_model_says_what_its_outputs_mean_and_is_small():
    path = PROJECT / "model.onnx"
    model = onnx.load(path)
    facts = {entry.key: json.loads(entry.value) for entry in model.metadata_props}
    assert facts["labels"] == facts["edgefirst"]["dataset"]["classes"] == list(SCENES["CLASSES"])
    [hint] = facts["edgefirst"]["split_hints"]
    channels = [boundary["channels"] for boundary in hint["boundaries"]]
    shape = [dim.dim_value for dim in model.graph.output[0].type.tensor_type.shape.dim]
    assert [0, *(end for _, end in channels)] == [*(start for start, _ in channels), shape[1]]
    assert path.stat().st_size <= 1_500_000
    assert model.opset_import[0].version <= 19
