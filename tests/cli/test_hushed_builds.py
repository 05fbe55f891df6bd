"""A verb shows the error of a build that it does not print, or of a project it cannot plan."""

from __future__ import annotations

from pathlib import Path

import pytest

from npumake.cli.main import main
from workspaces import lay_out


@pytest.mark.parametrize("words", [("check", "digits"), ("perf", "digits:rdk-x5")], ids=str)
def test_without_the_model_a_verb_says_so(
    words: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    workspace = lay_out(tmp_path / "w")
    (workspace.project / "model.onnx").unlink()
    monkeypatch.chdir(workspace.root)
    assert main([*words]) == 2
    assert "error: no file `model.onnx`" in capsys.readouterr().err


def test_show_says_why_a_project_has_no_nodes(tmp_path, monkeypatch, capsys):
    workspace = lay_out(tmp_path / "w")
    (workspace.project / "project.yaml").write_text("model: [\n", encoding="utf-8")
    monkeypatch.chdir(workspace.root)
    assert main(["show", "digits:rdk-x5/quantized"]) == 2
    assert "error: not YAML" in capsys.readouterr().err


def test_show_of_another_project_is_not_stopped_by_a_broken_one(tmp_path, monkeypatch, capsys):
    workspace = lay_out(tmp_path / "w")
    broken = workspace.project.parent / "broken"
    broken.mkdir()
    (broken / "project.yaml").write_text("model: [\n", encoding="utf-8")
    monkeypatch.chdir(workspace.root)
    assert main(["show", "digit:rdk-x5/quantized"]) == 2
    error = capsys.readouterr().err
    assert "error: no file and no node `digit:rdk-x5/quantized`" in error
