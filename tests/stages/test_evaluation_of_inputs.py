"""A model of several inputs is evaluated on files of each, fed together."""

from __future__ import annotations

import json

import numpy as np
import pytest
from numpy.random import RandomState

from npumake.graph import parse_text
from workspaces import Workspace, lay_out_none

COUNT, SIDE = 30, 4
YAML = """\
dataset: {files: {left: left/*.npy, right: right/*.npy}, labels: labels.csv}
artifacts: [float, quantized, compiled]
"""


@pytest.fixture(scope="module")
def paired(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """Which of two rows is larger: the class is where the left is most ahead of the right."""
    workspace = lay_out_none(tmp_path_factory.mktemp("pair") / "w", "pair")
    project = workspace.project
    project.mkdir()
    text = f"p (float[1,{SIDE}] left, float[1,{SIDE}] right) => (float[1,{SIDE}] logits)"
    graph = parse_text(f"{text} {{ logits = Sub(left, right) }}")
    (project / "model.onnx").write_bytes(graph.to_bytes())
    random, lines = RandomState(0), ["file,label"]
    for number in range(COUNT):
        for side in ("left", "right"):
            (project / side).mkdir(exist_ok=True)
            row = random.uniform(-1, 1, (1, SIDE)).astype(np.float32)
            np.save(project / side / f"{side}{number:02}.npy", row)
        lines.append(f"left{number:02}.npy,{random.randint(SIDE)}")
    (project / "labels.csv").write_text("\n".join(lines) + "\n")
    (project / "evaluation.yaml").write_text(YAML)
    (project / "project.yaml").write_text(
        "model: {path: model.onnx}\ntargets: [ara240]\n"
        "data:\n  left: {files: left/*.npy}\n  right: {files: right/*.npy}\n"
    )
    return workspace


@pytest.mark.slow
def test_top1_is_that_of_numpy(paired: Workspace) -> None:
    run = paired.npumake("build", "pair", check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    project = paired.project
    rows = [line.split(",") for line in (project / "labels.csv").read_text().split()[1:]]
    right = 0
    for file, label in rows:
        left = np.load(project / "left" / file)
        logits = left - np.load(project / "right" / file.replace("left", "right"))
        right += int(np.argmax(logits) == int(label))
    found = json.loads((project / "out/float_score.json").read_text())["by_name"]["top1"]
    assert found == pytest.approx(100 * right / COUNT, abs=1e-6)
    for score in ("quantized_score", "compiled_score"):
        made = json.loads((project / f"out/{score}.ara240.json").read_text())["by_name"]["top1"]
        assert abs(made - found) <= 100 * 2 / COUNT


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("{left: left/*.npy, right: right/*.npy}", "left/*.npy", "2 inputs, the dataset one"),
        ("right: right", "write: right", "the model has no input `write`"),
        (", right: right/*.npy", "", "no files for input `right`"),
        ("right/*", "right/*1", "3 files, but 30 of the first input"),
        ("labels.csv}", "labels.csv, transforms: [hwc2chw]}", "`transforms` for several inputs"),
    ],
)
def test_files_that_do_not_go_together_are_one_error(
    paired: Workspace, old: str, new: str, said: str
) -> None:
    assert old in YAML
    (paired.project / "evaluation.yaml").write_text(YAML.replace(old, new))
    run = paired.npumake("build", "pair:float_score", check=False)
    (paired.project / "evaluation.yaml").write_text(YAML)
    assert (run.returncode, run.stdout.count("error:")) == (2, 1)
    assert said in run.stdout
    assert "evaluation.yaml:1:" in run.stdout
