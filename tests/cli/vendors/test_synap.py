"""`npumake synap`, on a digits model and metafiles as SyNAP's guide has them."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import yaml
from PIL import Image

from forks import run_npumake
from frontends.test_tflite_detections import detector
from npumake.cli.main import main
from npumake.runtime import Session
from workspaces import REPO, shared_data

DIGITS = REPO / "projects" / "digits"
Output = pytest.CaptureFixture[str]

META = """\
inputs:
  - name: image
    shape: [1, 1, 8, 8]
    scale: 16
outputs:
  - format: confidence_array class_index_base=${FILE:base.txt}
quantization:
  algorithm: kl_divergence
  dataset: ${ENV:KIND}/*.npy
"""


@pytest.fixture
def here(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """A user's folder, with normalized samples; the shell stands above it.

    One store for all tests: what one has built the others recall."""
    folder = tmp_path / "net"
    (folder / "arrays").mkdir(parents=True)
    shutil.copy(DIGITS / "model.onnx", folder / "digits.onnx")
    for file in sorted((DIGITS / "samples").iterdir()):
        np.save(folder / "arrays" / file.name, (np.load(file) / 16).astype(np.float32))
    (folder / "base.txt").write_text("0\n")
    (folder / "meta.yaml").write_text(META)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KIND", "arrays")
    monkeypatch.setenv("PYTHONPATH", str(REPO / "pipeline"))
    monkeypatch.setenv("NPUMAKE_CACHE", str(tmp_path_factory.getbasetemp() / "synap"))
    monkeypatch.delenv("CI", raising=False)
    return folder


def synap(*arguments: str, code: int = 0) -> str:
    """What the command says, as a user runs it from here."""
    run = run_npumake("synap", *arguments)
    assert run.returncode == code, run.stdout + run.stderr
    return run.stdout + run.stderr


def convert(*arguments: str, code: int = 0) -> str:
    model = ["--model", "net/digits.onnx", "--target", "sl1680", "--out-dir", "out"]
    return synap("convert", *model, *arguments, code=code)


@pytest.mark.slow
def test_convert_leaves_the_documented_files_and_makes_nothing_twice(here: Path, monkeypatch):
    monkeypatch.delenv("NPUMAKE_CACHE")
    assert "Conversion successful" in convert("--meta", "net/meta.yaml")
    assert {file.name for file in Path("out").iterdir()} == {
        *("model.hybrid", "model_info.txt", "quantization_info.yaml", "quantization_entropy.txt"),
        *("build", "cache"),
    }
    assert "11 current" in convert("--meta", "net/meta.yaml")


@pytest.mark.slow
def test_model_info_tells_of_tensors_layers_and_memory(here: Path):
    convert("--meta", "net/meta.yaml", "--silent")
    found = Path("out/model_info.txt").read_text()
    assert found.startswith("Model converted with npumake ")
    assert "\ndelegate: npu\nsubgraphs: 1\n" in found
    tensors = yaml.safe_load(found.split("=" * 100)[1].partition(":")[2])
    assert (tensors["Inputs"][0]["name"], tensors["Inputs"][0]["type"]) == ("image", "uint8")
    assert tensors["Outputs"][0]["format"] == "confidence_array class_index_base=0"
    assert "    1 | npu | Conv+Clip                | stem_conv\n" in found


@pytest.mark.slow
def test_quantization_info_holds_the_grid_of_every_tensor(here: Path):
    convert("--meta", "net/meta.yaml", "--silent")
    found = yaml.safe_load(Path("out/quantization_info.yaml").read_text())
    assert {"@image:out0", "@stem_conv:out0", "@stem_conv:weight", "@logits:out0"} <= set(found)
    one, weight = found["@image:out0"], found["@stem_conv:weight"]
    assert (one["qtype"], one["quantizer"], one["zero_point"]) == ("u8", "asymmetric_affine", 0)
    assert one["max_value"] == pytest.approx(255 * one["scale"])
    assert (weight["qtype"], weight["quantizer"]) == ("u8", "asymmetric_affine")
    assert weight["scale"] == pytest.approx((weight["max_value"] - weight["min_value"]) / 255)
    assert found["@stem_conv:bias"]["qtype"] == "i32"


@pytest.mark.slow
def test_entropy_is_ascending_in_0_to_1_activations_first(here: Path):
    convert("--meta", "net/meta.yaml", "--silent")
    lines = Path("out/quantization_entropy.txt").read_text().splitlines()
    names, values = zip(*(line.split(", ") for line in lines), strict=True)
    kinds = [name.rpartition(":")[2] for name in names]
    assert kinds == ["out0"] * kinds.count("out0") + ["weight"] * kinds.count("weight")
    half = kinds.count("out0")
    for part in (values[:half], values[half:]):
        numbers = [float(value) for value in part]
        assert numbers == sorted(numbers)
        assert 0 <= numbers[0] <= numbers[-1] <= 1


@pytest.mark.slow
def test_entropy_is_told_of_kl_divergence_only(here: Path):
    convert("--meta", "net/meta.yaml", "--silent")
    text = META.replace("  algorithm: kl_divergence\n", "")
    (here / "meta.yaml").write_text(text)
    convert("--meta", "net/meta.yaml", "--silent")
    assert not Path("out/quantization_entropy.txt").exists()
    assert Path("out/quantization_info.yaml").is_file()


@pytest.mark.slow
def test_pictures_calibrate_like_the_arrays_they_become(here: Path):
    """A picture of the input's size, in gray, holds 16 times the normalized value."""
    (here / "pictures").mkdir()
    for file in sorted((here / "arrays").iterdir()):
        pixels = (np.load(file) * 16).astype(np.uint8).reshape(8, 8)
        Image.fromarray(pixels).save(here / "pictures" / f"{file.stem}.png")
    convert("--meta", "net/meta.yaml", "--silent")
    expected = Path("out/model.hybrid").read_bytes()
    (here / "meta.yaml").write_text(META.replace("${ENV:KIND}/*.npy", "pictures/*.png"))
    convert("--meta", "net/meta.yaml", "--silent")
    assert Path("out/model.hybrid").read_bytes() == expected


@pytest.mark.slow
def test_another_value_of_a_variable_is_another_project(here: Path, monkeypatch):
    convert("--meta", "net/meta.yaml", "--silent")
    (here / "fewer").mkdir()
    for file in sorted((here / "arrays").iterdir())[:9]:
        shutil.copy(file, here / "fewer")
    monkeypatch.setenv("KIND", "fewer")
    assert "made      build:samples" in convert("--meta", "net/meta.yaml")


@pytest.mark.slow
def test_files_behind_an_unset_variable_are_missing_for_its_sake(here: Path, monkeypatch):
    monkeypatch.delenv("KIND")
    lines = convert("--meta", "net/meta.yaml", code=2)
    assert "no file matches" in lines
    assert "hint: set the environment variable `KIND`" in lines
    monkeypatch.setenv("KIND", "arrays")  # the hint, done as it says
    assert "Conversion successful" in convert("--meta", "net/meta.yaml")


@pytest.mark.slow
def test_preprocessing_in_the_model_feeds_it_planes(here: Path):
    text = META.replace("    scale: 16\n", "    scale: 16\n    preprocess: {type: gray}\n")
    (here / "meta.yaml").write_text(text)
    convert("--meta", "net/meta.yaml", "--silent")
    pixels = np.zeros((1, 8, 8, 1), np.float32)
    (scores,) = Session("out/model.hybrid").run(None, {"image": pixels - 128})
    assert scores.shape == (1, 10)


@pytest.mark.slow
@pytest.mark.parametrize("chip", ["DVF120", "GENERIC", "SL1620"])
def test_a_chip_without_an_npu_runs_all_of_it_on_the_cpu(here: Path, chip: str):
    model = ["--model", "net/digits.onnx", "--target", chip, "--out-dir", "out"]
    synap("convert", *model, "--meta", "net/meta.yaml", "--silent")
    found = Path("out/model_info.txt").read_text()
    assert "delegate: npu" not in found
    assert " | npu | " not in found


@pytest.mark.slow
def test_a_quantized_tflite_needs_no_metafile(here: Path):
    model = shared_data() / "models" / "classification" / "mobilenet_v1_0.25_224_quant.tflite"
    if not model.is_file():
        pytest.skip("the real models are not here")
    synap("convert", *("--model", str(model), "--target", "VS680", "--out-dir", "out", "--silent"))
    assert "delegate: npu" in Path("out/model_info.txt").read_text()
    assert not Path("out/quantization_info.yaml").exists()


SSD = """\
inputs:
  - {name: t0, shape: [1, 5, 4]}
  - {name: t1, shape: [1, 5, 3]}
outputs:
  - name: t2
    dequantize: true
    format: tflite_detection_boxes y_scale=10 x_scale=10 h_scale=5 w_scale=5 anchors=${ANCHORS}
  - name: t3
    dequantize: true
    format: per_class_confidence class_index_base=-1
quantization:
  dataset: [random, random]
"""


@pytest.mark.slow
def test_a_detector_of_the_guide_s_tutorial_brings_its_anchors(here: Path):
    (here / "ssd.tflite").write_bytes(detector())
    (here / "ssd.yaml").write_text(SSD)
    model = ["--model", "net/ssd.tflite", "--meta", "net/ssd.yaml", "--target", "VS680"]
    synap("convert", *model, "--out-dir", "out", "--silent")
    said = " ".join(Path("out/model_info.txt").read_text().split())
    assert "anchors=[[0.000000,0.125000,0.250000,0.375000],[0.500000," in said
    assert "per_class_confidence class_index_base=-1" in said


@pytest.mark.slow
def test_version_and_help_name_what_there_is(here: Path):
    assert synap("version").startswith("npumake ")
    assert synap("convert", "--version") == synap("version")
    for command in ("convert", "version", "help"):
        assert command in synap("help")


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("--model none.onnx --target VS680", "cannot read the model"),
        ("--model net/digits.onnx --target VS690", "did you mean `VS680`"),
        ("--model net/base.txt --target VS680 --meta net/none.yaml", "cannot read the file"),
        ("--model net/pointer.onnx --target VS680", "a Git LFS pointer"),
        ("--model net/digits.onnx --target SL1620 --meta net/npu.yaml", "sl1620 has no npu"),
    ],
)
def test_one_clear_error_and_nothing_written(
    here: Path, capsys: Output, command: str, expected: str
):
    (here / "pointer.onnx").write_text("version https://git-lfs.github.com/spec/v1\n")
    (here / "npu.yaml").write_text("delegate: npu\n")
    assert main(["synap", "convert", "--out-dir", "out", *command.split()]) == 2
    said = capsys.readouterr().err
    assert expected in said
    assert said.count("error: ") == 1
    assert not Path("out").exists()


def test_a_mistake_of_a_stage_points_into_the_metafile_and_silence_keeps_it(here: Path):
    (here / "meta.yaml").write_text(META.replace("scale: 16", "scale: 16\n    means: [1, 2]"))
    said = convert("--meta", "net/meta.yaml", "--silent", code=2)
    assert "2 `means` for 1 channels" in said
    (here / "meta.yaml").write_text(META.replace("image", "picture"))
    said = convert("--meta", "net/meta.yaml", "--silent", code=2)
    assert "net/meta.yaml:" in said
    assert said.count("error: ") == 1
