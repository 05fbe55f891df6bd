"""The vendors' commands, on a digits model and a YAML as their guides have it."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from custom.files import MODEL, VENDOR
from forks import run_npumake
from npumake.cli.main import main
from npumake.graph import parse_text
from vendor_logs import DIGITS, HB_COMPILE, HB_MAPPER, write_samples
from workspaces import REPO

Output = pytest.CaptureFixture[str]

STAGES = ("original_float", "optimized_float", "calibrated", "quantized")


@pytest.fixture
def here(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """A vendor's folder, as a user has it; the shell stands above it.

    One store for all tests: what one has built the others recall."""
    folder = tmp_path / "mapper"
    folder.mkdir()
    shutil.copy(DIGITS / "model.onnx", folder / "digits.onnx")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setenv("NPUMAKE_CACHE", str(tmp_path_factory.getbasetemp() / "drop_in"))
    monkeypatch.setenv("PYTHONPATH", str(REPO / "pipeline"))
    return folder


def npumake(*arguments: str, code: int = 0) -> str:
    """What the command says, as a user runs it from here."""
    run = run_npumake(*arguments)
    assert run.returncode == code, run.stdout + run.stderr
    return run.stdout


@pytest.mark.slow
def test_the_checker_places_every_node_of_the_float_model(here: Path):
    arguments = ["--model-type", "onnx", "--march", "bayes-e", "--model", "mapper/digits.onnx"]
    shape = ["--input-shape", "image", "1x1x8x8"]
    shown = npumake("hb_mapper", "checker", *arguments, *shape)
    logged = Path("hb_mapper_checker.log").read_text()
    for text in (shown, logged):
        assert "stem_conv                        BPU  id(0)     HzSQuantizedConv" in text
        assert "rdk-x5: 11 nodes, 0 on the CPU, 1 subgraphs main_graph_subgraph_0" in text


@pytest.mark.slow
def test_hb_compile_checks_a_model_without_a_yaml(here: Path):
    shown = npumake("hb_compile", "-m", "mapper/digits.onnx", "--march", "nash-e")
    assert "| stem_conv        | Conv+Clip         | BPU |" in shown
    assert Path("hb_compile.log").is_file()


@pytest.mark.slow
def test_makertbin_leaves_the_documented_files(here: Path):
    write_samples(here, 1, np.uint8)
    (here / "digits_config.yaml").write_text(HB_MAPPER)
    command = ["hb_mapper", "makertbin", "--model-type", "onnx", "-c", "mapper/digits_config.yaml"]
    shown = npumake(*command)
    found = {file.name for file in (here / "model_output").iterdir() if file.is_file()}
    names = {f"digits_8x8_gray_{stage}_model.onnx" for stage in STAGES}
    pages = {f"main_graph_subgraph_0.{kind}" for kind in ("html", "json")}
    others = {"digits_8x8_gray.hybrid", "digits_8x8_gray_quant_info.json"}
    assert found == {*names, *pages, *others}
    assert "digits_8x8_gray.hybrid is not one" in shown
    assert "10 current" in npumake(*command)


@pytest.mark.slow
def test_hb_compile_takes_normalized_samples_to_the_same_thresholds(here: Path):
    (here / "digits_config.yaml").write_text(HB_COMPILE)
    write_samples(here, 0.0625, np.float32)
    npumake(*["hb_compile", "-c", "mapper/digits_config.yaml"])
    normalized = (here / "model_output" / "digits_8x8_gray_calibrated_model.onnx").read_bytes()
    shutil.rmtree(here / "calibration_data")
    shutil.rmtree(here / "model_output")
    write_samples(here, 1, np.uint8)
    # A Gemm is a Conv on Bayes, whose sums would be handed out.
    codes = "'bayes'\n  node_info: {logits: {OutputType: int8}}"
    yaml = HB_MAPPER.replace("'bayes-e'", codes)
    (here / "digits_config.yaml").write_text(yaml)
    command = ["hb_mapper", "makertbin", "--model-type", "onnx", "-c", "mapper/digits_config.yaml"]
    npumake(*command)
    raw = (here / "model_output" / "digits_8x8_gray_calibrated_model.onnx").read_bytes()
    assert normalized == raw


@pytest.mark.slow
@pytest.mark.parametrize("tool", ["hb_mapper", "hb_compile"])
def test_a_finding_about_the_samples_is_waived_where_the_yaml_has_no_word_for_it(
    here: Path, tool: str
):
    kind = {"hb_mapper": np.uint8, "hb_compile": np.float32}[tool]
    write_samples(here, 0.0625 if tool == "hb_compile" else 1, kind)
    file = min((here / "calibration_data").iterdir())
    np.save(file, np.zeros_like(np.load(file)))
    (here / "digits_config.yaml").write_text(
        {"hb_mapper": HB_MAPPER, "hb_compile": HB_COMPILE}[tool]
    )
    makes = ["hb_mapper", "makertbin", "--model-type", "onnx"] if tool == "hb_mapper" else [tool]
    refused = npumake(*makes, "-c", "mapper/digits_config.yaml", code=2)
    assert f"one value all over: {file.name}" in refused
    waived = npumake(*makes, "-c", "mapper/digits_config.yaml", "--allow", "blank")
    assert "error" not in waived


@pytest.mark.slow
def test_skip_compile_leaves_no_compiled_file(here: Path):
    (here / "digits_config.yaml").write_text(HB_COMPILE)
    write_samples(here, 0.0625, np.float32)
    npumake(*["hb_compile", "-c", "mapper/digits_config.yaml", "--skip", "compile"])
    names = {file.name for file in (here / "model_output").iterdir() if file.is_file()}
    assert "digits_8x8_gray_ptq_model.onnx" in names
    assert "digits_8x8_gray.hybrid" not in names


@pytest.mark.slow
def test_fast_perf_needs_neither_yaml_nor_samples(here: Path):
    arguments = ["--model-type", "onnx", "--model", "mapper/digits.onnx", "--march", "bayes-e"]
    npumake(*["hb_mapper", "makertbin", "--fast-perf", *arguments])
    assert Path("model_output/digits.hybrid").is_file()


@pytest.mark.slow
def test_skip_calibrates_on_noise_that_nothing_refuses(here: Path):
    yaml = HB_MAPPER.replace("'max'", "'skip'").replace(
        "  cal_data_dir: './calibration_data'\n", ""
    )
    (here / "digits_config.yaml").write_text(yaml)
    npumake(*["hb_mapper", "makertbin", "--model-type", "onnx", "-c", "mapper/digits_config.yaml"])
    assert (here / "model_output" / "digits_8x8_gray.hybrid").is_file()


@pytest.mark.slow
def test_preprocess_on_reads_pictures_as_the_pixels_they_hold(here: Path):
    command = ["hb_mapper", "makertbin", "--model-type", "onnx", "-c", "mapper/digits_config.yaml"]
    calibrated = here / "model_output" / "digits_8x8_gray_calibrated_model.onnx"
    write_samples(here, 1, np.uint8)
    (here / "digits_config.yaml").write_text(HB_MAPPER)
    npumake(*command)
    expected = calibrated.read_bytes()
    for file in sorted((here / "calibration_data").iterdir()):
        Image.fromarray(np.load(file).reshape(8, 8)).save(file.with_suffix(".png"))
        file.unlink()
    yaml = HB_MAPPER.replace("  cal_data_type: 'uint8'", "  preprocess_on: True")
    (here / "digits_config.yaml").write_text(yaml)
    npumake(*command)
    assert calibrated.read_bytes() == expected


@pytest.mark.slow
def test_bare_numbers_are_the_samples_of_every_example_of_the_vendor(here: Path):
    command = ["hb_mapper", "makertbin", "--model-type", "onnx", "-c", "mapper/digits_config.yaml"]
    write_samples(here, 1, np.uint8)
    for file in sorted((here / "calibration_data").iterdir()):
        np.load(file).tofile(file.with_suffix(".gray"))
        file.unlink()
    (here / "digits_config.yaml").write_text(HB_MAPPER)
    npumake(*command)
    assert (here / "model_output" / "digits_8x8_gray.hybrid").is_file()


@pytest.mark.slow
@pytest.mark.parametrize("tool", ["hb_mapper", "hb_compile"])
def test_operators_beside_the_yaml_are_run_by_the_project_the_command_makes(here: Path, tool: str):
    parse_text(MODEL).save(here / "digits.onnx")
    (here / "ops").mkdir()
    (here / "ops" / "shrink.py").write_text(VENDOR)
    (here / "calibration_data").mkdir()
    for number in range(8):
        image = np.random.default_rng(number).normal(size=(1, 1, 8, 8)).astype(np.float32)
        np.save(here / "calibration_data" / f"{number}.npy", image)
    yaml = {"hb_mapper": HB_MAPPER, "hb_compile": HB_COMPILE}[tool]
    yaml = yaml.replace("gray\n", "featuremap\n").replace("'gray'", "'featuremap'")
    yaml = yaml.replace("'data_scale'", "'no_preprocess'").replace("  scale_value: 0.0625\n", "")
    yaml = yaml.replace("digits_8x8_featuremap", "shrink").replace("digits_8x8_gray", "shrink")
    yaml = yaml.replace("'uint8'", "'float32'")
    yaml += "custom_op: {op_register_files: shrink.py, custom_op_dir: ./ops}\n"
    (here / "c.yaml").write_text(yaml)
    makes = ["hb_mapper", "makertbin", "--model-type", "onnx"] if tool == "hb_mapper" else [tool]
    npumake(*makes, "-c", "mapper/c.yaml")
    assert (here / "model_output" / "shrink.hybrid").is_file()
    copy = here / "model_output" / "shrink" / "operators" / "shrink.py"
    assert copy.read_text() == VENDOR


@pytest.mark.slow
def test_a_mistake_of_a_stage_points_into_the_vendor_s_file(here: Path):
    write_samples(here, 1, np.uint8)
    yaml = HB_MAPPER.replace("scale_value: 0.0625", "scale_value: '1 2 3'")
    (here / "digits_config.yaml").write_text(yaml)
    command = ["hb_mapper", "makertbin", "--model-type", "onnx", "-c", "mapper/digits_config.yaml"]
    output = npumake(*command, code=2)
    assert "3 values for 1 channels" in output
    assert "mapper/digits_config.yaml:13:16" in output


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("hb_mapper makertbin --model-type onnx", "no YAML"),
        ("hb_mapper makertbin --model-type onnx --fast-perf -c a.yaml", "takes no YAML"),
        ("hb_mapper makertbin --model-type onnx --fast-perf --march bayes", "no model"),
        ("hb_mapper makertbin --model-type onnx -c none.yaml", "cannot read the file"),
        ("hb_mapper checker --model-type onnx --model m.onnx", "no march"),
        ("hb_mapper checker --model-type onnx --model m.onnx --march bayes_e", "unknown march"),
        ("hb_mapper checker --model-type caffe --model m.caffemodel --march bayes", "prototxt"),
        (
            "hb_mapper checker --model-type onnx --model m.onnx --march bayes --input-shape a 1,2",
            "`1,2` is not a shape",
        ),
        ("hb_compile", "no march"),
        ("hb_compile -c a.yaml -m m.onnx", "the YAML already names a model"),
    ],
)
def test_one_clear_error(here: Path, capsys: Output, command: str, expected: str):
    assert main(command.split()) == 2
    said = capsys.readouterr().err
    assert expected in said
    assert said.count("error: ") == 1


def test_a_caffe_run_wants_the_caffe_keys(here: Path, capsys: Output):
    (here / "c.yaml").write_text(HB_MAPPER)
    command = ["hb_mapper", "makertbin", "--model-type", "caffe", "-c", "mapper/c.yaml"]
    assert main(command) == 2
    assert "Missing keys: 'caffe_model', 'prototxt'" in capsys.readouterr().err


BROKEN: dict[str, tuple[str, str, str]] = {
    "before the plan": ("scale_value: 0.0625", "scale_value: 1 x", "is not a list of numbers"),
    "no folder": ("./calibration_data", "none/here", "none/here/*"),
    "no model": ("digits.onnx", "none.onnx", "none.onnx`"),
}


@pytest.mark.parametrize("tool", ["hb_mapper", "hb_compile"])
@pytest.mark.parametrize("name", BROKEN)
def test_the_log_is_of_this_run_and_speaks_of_the_vendor_s_file(here: Path, tool: str, name: str):
    write_samples(here, 0.0625 if tool == "hb_compile" else 1, np.uint8)
    log = Path("hb_compile.log" if tool == "hb_compile" else "hb_mapper_makertbin.log")
    log.write_text("an earlier run\n")
    old, new, expected = BROKEN[name]
    (here / "c.yaml").write_text(
        (HB_MAPPER if tool == "hb_mapper" else HB_COMPILE).replace(old, new)
    )
    makes = ["hb_mapper", "makertbin", "--model-type", "onnx"] if tool == "hb_mapper" else [tool]
    run = run_npumake(*makes, "-c", "mapper/c.yaml")
    shown, logged = run.stdout + run.stderr, log.read_text()
    assert run.returncode == 2
    for text in (shown, logged):
        assert expected in text
        assert "mapper/c.yaml:" in text
        assert "`data:`" not in text
        assert "../" not in text
    assert "an earlier run" not in logged


@pytest.mark.slow
def test_one_sample_is_enough_for_the_vendor_and_is_told(here: Path):
    write_samples(here, 1, np.uint8)
    for file in sorted((here / "calibration_data").iterdir())[1:]:
        file.unlink()
    (here / "c.yaml").write_text(HB_MAPPER)
    shown = npumake("hb_mapper", "makertbin", "--model-type", "onnx", "-c", "mapper/c.yaml")
    assert "1 sample, at least 8 are needed" in shown
    assert (here / "model_output" / "digits_8x8_gray.hybrid").is_file()
