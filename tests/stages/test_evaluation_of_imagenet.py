"""Top-1 of real classifiers on real pictures: the figure of ten lines of NumPy.

The models and pictures lie beside the repository, not in it; where they are absent this is skipped.
"""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from npumake.data import geometry
from npumake.project.transforms import CenterCrop, PaddedCenterCrop, Resize, ShortSideResize
from npumake.runtime import Session
from workspaces import lay_out_none, shared_data

PICTURES = shared_data() / "images/imagenet500"
MODELS = shared_data() / "models/classification"
EVALUATED = 200  # of 500, spread evenly
PROJECT = """\
model: {{path: {model}}}
inputs: {{'*': {{type: {type}, layout: {layout}, mean: {mean}, scale: {scale}}}}}
data: {{'*': {{files: samples/*.jpg, channels: {type}, transforms: {transforms}}}}}
targets: [ara240]
evaluation:
  dataset:
    files: {pictures}/*.jpg
    labels: {pictures}/labels.csv
    label_column: class_index
    label_offset: {offset}
  limit: {limit}
"""
SQUEEZENET = {
    "model": "squeezenet1.1_winml_fp32_DERIVED.onnx",
    "type": "bgr",
    "layout": "NCHW",
    "mean": "[103.939, 116.779, 123.68]",
    "scale": "1",
    "transforms": "[short_side_resize: {short_size: 256}, center_crop: {crop_size: 224}, hwc2chw]",
    "offset": 0,
}
MOBILENET = {
    "model": "mobilenet_v1_0.25_224_float.tflite",
    "type": "rgb",
    "layout": "NHWC",
    "mean": "127.5",
    "scale": "0.00784313725490196",
    "transforms": "[padded_center_crop, resize: {target_size: 224, mode: opencv}]",
    "offset": 1,
}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PICTURES.is_dir(), reason="shared/data/images is not here"),
]


def prepared(picture: np.ndarray, model: dict[str, object]) -> np.ndarray:
    """(224, 224, 3), float32, of a picture (H, W, 3) in RGB."""
    if model is SQUEEZENET:
        small = geometry.short_side_resize(picture[..., ::-1], ShortSideResize(256))
        return geometry.center_crop(small, CenterCrop(224))
    middle = geometry.padded_center_crop(picture, PaddedCenterCrop())
    return geometry.resize(middle, Resize(224, mode="opencv"))


def top1(artifact: Path, model: dict[str, object]) -> float:
    rows = list(csv.DictReader((PICTURES / "labels.csv").read_text().splitlines()))
    rows = sorted(rows, key=lambda row: row["file"])
    rows = [rows[n * len(rows) // EVALUATED] for n in range(EVALUATED)]
    session, right = Session(artifact), 0
    for row in rows:
        x = prepared(np.asarray(Image.open(PICTURES / row["file"]).convert("RGB")), model)[None]
        x = x.transpose(0, 3, 1, 2) if model["layout"] == "NCHW" else x
        answer = session.run(None, {session.input_names[0]: x.astype(np.float32) - 128})[0]
        right += int(answer.argmax() == int(row["class_index"]) + model["offset"])
    return 100 * right / EVALUATED


@pytest.mark.parametrize(
    "model",
    [
        pytest.param(
            SQUEEZENET,
            id="squeezenet",
            marks=pytest.mark.skipif(
                not os.environ.get("NPUMAKE_EVERY"), reason="half a minute: by NPUMAKE_EVERY=1"
            ),
        ),
        pytest.param(MOBILENET, id="mobilenet"),
    ],
)
def test_top1_is_that_of_ten_lines_of_numpy(model: dict[str, object], tmp_path: Path) -> None:
    workspace = lay_out_none(tmp_path / "w", "real")
    project = workspace.project
    (project / "samples").mkdir(parents=True)
    (project / str(model["model"])).symlink_to(MODELS / str(model["model"]))
    for file in sorted(PICTURES.glob("*.jpg"))[1::25]:
        (project / "samples" / file.name).symlink_to(file)
    text = PROJECT.format(**model, pictures=PICTURES, limit=EVALUATED)
    (project / "project.yaml").write_text(text)
    run = workspace.npumake("build", "real", check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    for score, artifact, least in (
        ("float_score.json", "original_float.onnx", 50.0),
        ("quantized_score.ara240.json", "quantized.ara240.onnx", 40.0),
    ):
        found = json.loads((project / "out" / score).read_text())
        assert found["pictures"] == EVALUATED
        assert found["by_name"]["top1"] == pytest.approx(top1(project / "out" / artifact, model))
        assert found["by_name"]["top1"] > least
