"""Four newcomers' ways, each in at most five commands: every command ends with 0, and shows what it
promised."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from PIL import Image

from workspaces import REPO, Workspace, lay_out_none, shared_data

MOST = 5  # commands of a way
MOBILENET = "models/classification/mobilenet_v1_0.25_224_float.tflite"
YOLO = "models/detection/sscma_yolov5tiny_face_96.onnx"
PICTURES = 16
ENOUGH = 8  # pictures: a search over them is most of the time of a detector's build

# What a person writes who knows the model: its normalization is (x - 127.5) / 127.5.
BY_HAND = """\
model: {path: mobilenet.tflite}
inputs:
  input: {layout: NHWC, type: rgb, fed_type: rgb, mean: 127.5, scale: 0.00784314}
data:
  input:
    files: ../../photos/*.jpg
    transforms: [short_side_resize: {short_size: 256}, center_crop]
calibration: {method: default}
report: {} # compared on all samples
targets: [rdk-x5]
"""

FLOAT_TO_CHIP = (
    "npumake check mobilenet.tflite --target rdk-x5",
    "npumake new projects/mobilenet --model mobilenet.tflite --images photos --target rdk-x5",
    "npumake build mobilenet",
    "npumake run mobilenet photos/00.jpg",
)
DETECTOR_TO_TWO_CHIPS = (
    "npumake new projects/yolo --model yolo.onnx --images photos --target rdk-x5"
    " --target ethos-u55-128",
    "npumake build yolo",
    "npumake run yolo:rdk-x5 photos/00.jpg photos/01.jpg --score 0 --draw rdk",
    "npumake run yolo:ethos-u55-128 photos/00.jpg photos/01.jpg --score 0 --draw ethos",
)
REPOSITORY_TO_CI = (
    "npumake new . --config rdk_x5.yaml",
    "npumake lock",
    "git add .",
    "git -c user.name=me -c user.email=me@example.com commit -q -m npumake",
    "npumake ci --since HEAD~1 --frozen --junit junit.xml --sarif npumake.sarif --summary ci.md",
)
NOTEBOOK = (
    "import npumake, numpy as np",
    "samples = np.load('projects/digits/samples/0000.npy')[None] + np.arange(16)[:, None, None]",
    "print(npumake.check('projects/digits/model.onnx', 'rdk-x5'))",
    "model = npumake.quantize('projects/digits/model.onnx', samples.reshape(16, 1, 1, 8, 8)"
    ".astype(np.float32), target='rdk-x5')",
    "print(model.outputs); model.save('digits.hybrid')",
)


def test_no_way_takes_more_than_five_commands() -> None:
    ways = (FLOAT_TO_CHIP, DETECTOR_TO_TWO_CHIPS, REPOSITORY_TO_CI, NOTEBOOK)
    assert all(len(commands) <= MOST for commands in ways)


def walk(folder: Path, commands: Sequence[str]) -> list[subprocess.CompletedProcess[str]]:
    """Types each command in the folder; all end with 0."""
    runs = []
    for command in commands:
        words = shlex.split(command)
        is_ours = words[0] == "npumake"
        words = [sys.executable, "-m", "npumake", *words[1:]] if is_ours else words
        clean = {k: v for k, v in os.environ.items() if k not in ("CI", "NPUMAKE_PARANOID")}
        environment = {**clean, "PYTHONPATH": str(REPO / "pipeline")}
        run = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True)
        assert run.returncode == 0, f"{command}\n{run.stdout}{run.stderr}"
        assert "Traceback" not in run.stderr
        runs.append(run)
    return runs


def photos(folder: Path, source: str, count: int = PICTURES) -> None:
    """So many of the shared pictures, named by number."""
    (folder / "photos").mkdir()
    files = sorted((shared_data() / source).rglob("*.jpg"))[:count]
    for number, file in enumerate(files):
        shutil.copy(file, folder / "photos" / f"{number:02}.jpg")


@pytest.mark.slow
def test_a_float_classifier_becomes_a_file_for_the_chip(tmp_path: Path) -> None:
    """Its outputs are as close as those of a project that one writes by hand."""
    if not (shared_data() / MOBILENET).is_file():
        pytest.skip("no shared models")
    workspace = lay_out_none(tmp_path / "w", "mobilenet")
    shutil.copy(shared_data() / MOBILENET, workspace.root / "mobilenet.tflite")
    photos(workspace.root, "images/imagenet500")
    *_, shown = walk(workspace.root, FLOAT_TO_CHIP)
    assert len(shown.stdout.splitlines()) == 5  # classes
    by_hand = workspace.root / "projects" / "by-hand"
    by_hand.mkdir()
    shutil.copy(workspace.root / "mobilenet.tflite", by_hand)
    (by_hand / "project.yaml").write_text(BY_HAND)
    walk(workspace.root, ["npumake build by-hand"])
    assert cosines(workspace.project) == cosines(by_hand)
    assert min(cosines(by_hand)) > 0.9


def cosines(project: Path) -> list[float]:
    """Of the outputs, of the compiled file."""
    report = json.loads((project / "out" / "comparison.rdk-x5.json").read_text())
    return [output["cosine"] for output in report["outputs"]]


@pytest.mark.slow
def test_a_detector_becomes_files_for_two_chips_and_its_boxes_are_drawn(tmp_path: Path) -> None:
    if not (shared_data() / YOLO).is_file():
        pytest.skip("no shared models")
    pytest.importorskip("ethosu")
    workspace = lay_out_none(tmp_path / "w", "yolo")
    shutil.copy(shared_data() / YOLO, workspace.root / "yolo.onnx")
    photos(workspace.root, "images/coco128", ENOUGH)
    *_, rdk, ethos = walk(workspace.root, DETECTOR_TO_TWO_CHIPS)
    assert "x, y, width, height" in rdk.stdout
    assert "only an Ethos-U runs yolo.ethos-u55-128.tflite" in ethos.stderr
    for folder in ("rdk", "ethos"):
        for name in ("00", "01"):
            picture = sides(workspace.root / "photos" / f"{name}.jpg")
            assert sides(workspace.root / folder / f"{name}.png") == picture


def sides(file: Path) -> tuple[int, int]:
    with Image.open(file) as picture:
        return picture.size


@pytest.mark.slow
def test_a_repository_of_hb_mapper_is_built_in_ci(tmp_path: Path) -> None:
    repository = tmp_path / "resnet"
    repository.mkdir()
    digits = REPO / "projects" / "digits"
    shutil.copytree(digits / "samples", repository / "samples")
    shutil.copy(digits / "model.onnx", repository)
    yaml = (digits / "vendor" / "rdk_x5.yaml").read_text().replace("../", "./")
    (repository / "rdk_x5.yaml").write_text(yaml)
    base = ("git init -q .", "git add .", REPOSITORY_TO_CI[3])
    walk(repository, base)
    new, *_, built = walk(repository, REPOSITORY_TO_CI)
    assert "rdk_x5.yaml of hb_mapper, for rdk-x5" in new.stdout
    assert "resnet" in (repository / "ci.md").read_text()
    assert {"junit.xml", "npumake.sarif"} <= {*os.listdir(repository)}
    assert "touched   resnet" in built.stdout
    tracked = subprocess.run(["git", "ls-files"], cwd=repository, capture_output=True, text=True)
    folders = {line.partition("/")[0] for line in tracked.stdout.splitlines()}
    assert folders.isdisjoint({"out", "cache", ".doit.db"})


@pytest.mark.slow
def test_a_notebook_quantizes_and_saves(fresh: Workspace) -> None:
    script = "; ".join(NOTEBOOK)
    walk(fresh.root, [shlex.join([sys.executable, "-W", "error", "-c", script])])
    assert (fresh.root / "digits.hybrid").stat().st_size > 0
