"""Real .tflite models build, from project to bundle, as a user types it."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
import yaml

from npumake.runtime import Session
from workspaces import lay_out_none, shared_data

MODELS = shared_data() / "models"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not MODELS.is_dir(), reason="shared/data/models is not here"),
]

# file, input, shape of a sample, calibration method, least cosine of the output on ara240
BUILDS = [
    ("classification/mobilenet_v1_0.25_224_quant", "input", None, "load", None),
    ("classification/cifar10_resnet8_float", "input_1", (1, 32, 32, 3), "max", 0.95),
    ("classification/cifar10_resnet8_int8", "input_1_int8", (1, 32, 32, 3), "load", 0.9999),
    ("audio/kws_tiny_int8", "input_1", (1, 49, 10, 1), "load", 0.9999),
    ("anomaly/ad01_fp32", "input_1", (1, 640), "max", 0.99),
]


@pytest.mark.parametrize(
    ("model", "fed", "shape", "method", "least"), BUILDS, ids=[build[0] for build in BUILDS]
)
def test_a_model_builds_into_a_bundle_that_runs(tmp_path, model, fed, shape, method, least):
    workspace = lay_out_none(tmp_path, "m")
    project = workspace.project
    (project / "samples").mkdir(parents=True)
    shutil.copy(MODELS / f"{model}.tflite", project / "model.tflite")
    document = {
        "model": {"path": "model.tflite"},
        "calibration": {"method": method},
        "targets": ["ara240"],
    }
    if shape:
        document["data"] = {fed: {"files": "samples/*.npy"}}
        for index in range(8):
            sample = np.random.default_rng(index).normal(0, 30, shape).astype(np.float32)
            np.save(project / "samples" / f"{index}.npy", sample)
    (project / "project.yaml").write_text(yaml.safe_dump(document))
    workspace.npumake("build", "m")
    compared = json.loads((project / "out" / "comparison.ara240.json").read_text())
    assert compared["samples"] == (8 if shape else 0)
    assert least is None or min(made["cosine"] for made in compared["outputs"]) >= least
    session = Session(project / "out" / "m.ara240.hybrid")
    x = np.zeros(shape or (1, 224, 224, 3), np.float32)
    (y,) = session.run(None, {fed: x})
    assert np.isfinite(y).all()
