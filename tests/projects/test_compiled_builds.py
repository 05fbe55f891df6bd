"""A project builds for a compiler's target as a user types it, and the file runs."""

from __future__ import annotations

import json
from zipfile import ZipFile

import numpy as np
import pytest
import yaml
from workspaces import REPO, Workspace, lay_out

from pipeline.runtime import Session

pytestmark = pytest.mark.slow


def built(root, *targets: str) -> Workspace:
    """The project digits for these targets."""
    workspace = lay_out(root)
    file = workspace.project / "project.yaml"
    document = yaml.safe_load(file.read_text()) | {"targets": list(targets)}
    file.write_text(yaml.safe_dump(document))
    workspace.npumake("build", "digits")
    return workspace


def test_digits_as_tflite_answer_as_the_quantized_graph_does(tmp_path):
    pytest.importorskip("ai_edge_litert", reason="LiteRT is not installed")
    out = built(tmp_path, "tflite").project / "out"
    compiled, graph = Session(out / "digits.tflite.tflite"), Session(out / "quantized.tflite.onnx")
    pixels = np.load(REPO / "projects" / "digits" / "test_images.npy")[:100].astype(np.float32)
    exact = [compiled.run(None, {"image": x[None, 0, ..., None] - 128})[0] for x in pixels]
    wanted = [graph.run(None, {"image": x[None] - 128})[0] for x in pixels]
    assert np.mean(np.argmax(exact, -1) == np.argmax(wanted, -1)) >= 0.99


@pytest.mark.parametrize("target", ["ethos-u55-128", "ethos-u65-256", "ethos-u85-256"])
def test_vela_puts_all_of_digits_on_the_npu(tmp_path, target):
    pytest.importorskip("ethosu", reason="ethos-u-vela is not installed")
    workspace = built(tmp_path, target)
    file = workspace.project / "out" / f"digits.{target}.tflite"
    with ZipFile(file) as archive:
        estimate = json.loads(archive.read("vela.json"))
    assert estimate["operators"]["cpu"] == 0
    assert estimate["summary"]["cycles_total"] > 1000
    stamp = workspace.project / "out" / ".npumake" / f"{target}.compiled.json"
    assert "ethos-u-vela" in json.loads(stamp.read_text())["document"]["tools"]
