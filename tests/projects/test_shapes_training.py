"""train.py of shapes-detector, from painting to a model that builds: all of it, for a few steps."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from npumake.detection.notes import metadata_of
from npumake.graph import Graph
from workspaces import lay_out

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("torch") is None, reason="training needs torch"),
]


def test_a_short_training_writes_a_model_of_the_same_form(tmp_path: Path) -> None:
    workspace = lay_out(tmp_path / "w", "shapes-detector")
    trained = Graph.load(workspace.project / "model.onnx")
    script = workspace.project / "train.py"
    subprocess.run([sys.executable, str(script), "--steps", "20"], check=True)
    again = Graph.load(workspace.project / "model.onnx")
    assert [node.name for node in again.nodes()] == [node.name for node in trained.nodes()]
    assert metadata_of(again) == metadata_of(trained)
    assert again.to_bytes() != trained.to_bytes()
