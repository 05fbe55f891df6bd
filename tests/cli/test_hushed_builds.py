"""A verb that builds without a line of its own shows the error of that build."""

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
