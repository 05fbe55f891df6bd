"""A project builds for a compiler's target as a user types it, and the file runs."""

from __future__ import annotations

import json
from zipfile import ZipFile

import numpy as np
import pytest
import yaml

from npumake.errors import GraphError
from npumake.runtime import Session
from workspaces import REPO, Workspace, few, lay_out

pytestmark = pytest.mark.slow


def built(root, *targets: str) -> Workspace:
    """The project digits for these targets."""
    workspace = lay_out(root)
    file = workspace.project / "project.yaml"
    document = yaml.safe_load(file.read_text()) | {"targets": list(targets)}
    file.write_text(yaml.safe_dump(document))
    workspace.npumake("build", "digits")
    return workspace


@pytest.mark.parametrize(
    ("target", "suffix", "runtime"),
    [("tflite", ".tflite", "ai_edge_litert"), ("iree-cpu", ".vmfb", "iree.runtime")],
)
def test_digits_compiled_answer_as_the_quantized_graph_does(tmp_path, target, suffix, runtime):
    pytest.importorskip(runtime, reason="npumake[compilers] is not installed")
    out = built(tmp_path, target).project / "out"
    compiled = Session(out / f"digits.{target}{suffix}", allow_code=True)
    graph = Session(out / f"quantized.{target}.onnx")
    pixels = np.load(REPO / "projects" / "digits" / "test_images.npy")[:100].astype(np.float32)
    exact = [compiled.run(None, {"image": x[None, 0, ..., None] - 128})[0] for x in pixels]
    wanted = [graph.run(None, {"image": x[None] - 128})[0] for x in pixels]
    assert np.mean(np.argmax(exact, -1) == np.argmax(wanted, -1)) >= 0.99


@pytest.mark.parametrize(
    "target", few(["ethos-u55-128", "ethos-u65-256", "ethos-u85-256"], "ethos-u85-256".__eq__)
)
def test_vela_puts_all_of_digits_on_the_npu(tmp_path, target):
    pytest.importorskip("ethosu", reason="ethos-u-vela is not installed")
    workspace = built(tmp_path, target)
    file = workspace.project / "out" / f"digits.{target}.tflite"
    with ZipFile(file) as archive:
        estimate = json.loads(archive.read("vela.json"))
    assert estimate["operators"]["cpu"] == 0
    assert estimate["summary"]["cycles_total"] > 1000
    shown = workspace.npumake("show", str(file.relative_to(workspace.root))).stdout
    assert "CUSTOM ethos-u" in shown
    stamp = workspace.project / "out" / ".npumake" / f"{target}.compiled.json"
    assert "ethos-u-vela" in json.loads(stamp.read_text())["content"]["document"]["tools"]


def test_native_code_runs_for_nobody_who_did_not_ask(tmp_path):
    (tmp_path / "m.vmfb").write_bytes(b"")
    with pytest.raises(GraphError, match="native code"):
        Session(tmp_path / "m.vmfb")
    with pytest.raises(GraphError, match=r"no interface.json"):
        Session(tmp_path / "m.vmfb", allow_code=True)
