"""A finding about samples names the key that lets it pass; done as told, every finding passes."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from npumake.cli.main import main
from vendor_models import model

VENDOR = """\
model_parameters: {onnx_model: model.onnx, march: bayes-e}
input_parameters: {input_type_rt: nv12, input_type_train: rgb, input_layout_train: NCHW,
  norm_type: data_scale, scale_value: 0.004}
calibration_parameters: {cal_data_dir: data, cal_data_type: float32}
"""
SIDE = 16
ALLOWED = re.compile(r"hint: .*allow: \[(.*?)\]")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A vendor's folder whose three samples are normalized, blank, and the same twice."""
    (tmp_path / "vendor.yaml").write_text(VENDOR)
    (tmp_path / "model.onnx").write_bytes(model("data", SIDE, "first", ()))
    (tmp_path / "data").mkdir()
    normalized = np.random.default_rng(0).normal(size=(1, 3, SIDE, SIDE)).astype(np.float32)
    for number, sample in enumerate((normalized, normalized, np.zeros_like(normalized))):
        np.save(tmp_path / "data" / f"{number}.npy", sample)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CI", raising=False)
    return tmp_path


def hint(shown: str) -> str:
    return next(line for line in shown.splitlines() if line.startswith("hint: "))


def test_a_finding_is_allowed_beside_those_that_are(
    folder: Path, capsys: pytest.CaptureFixture[str]
):
    assert main(["new", ".", "--config", "vendor.yaml"]) == 0
    own, hints = (folder / "project.yaml").read_text(), list[str]()
    while main(["build", ".:samples"]) != 0:
        hints.append(hint("".join(capsys.readouterr())))
        allowed = ALLOWED.match(hints[-1])
        assert allowed
        line = f'data: {{"*": {{allow: [{allowed[1]}]}}}}\n'
        (folder / "project.yaml").write_text(own + line)
    assert hints[0].startswith('hint: `data: {"*": {allow: [few, range]}}` in project.yaml')
    assert allowed[1] == "few, range, blank, duplicate"
    assert len(hints) == 3


def test_a_build_after_a_failed_one_of_the_same_process_has_its_own_code(folder: Path):
    assert main(["new", ".", "--config", "vendor.yaml"]) == 0
    assert main(["build", ".:samples"]) == 2
    assert main(["build", ".:original_float"]) == 0
