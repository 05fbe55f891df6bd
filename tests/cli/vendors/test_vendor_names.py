"""The vendors' other programs by their own names, on bundles and stage files of one small model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from npumake.cli.main import ALIASES, VERBS, main
from npumake.engine.parallel import threads
from npumake.errors import GraphError
from npumake.graph import parse_text
from npumake.runtime import HB_ONNXRuntime, HBRuntime, Session
from workspaces import REPO

Output = pytest.CaptureFixture[str]
MODEL = """
<ir_version: 7, opset_import: ["" : 11]>
net (float[1,3,8,8] img, float[1,2,8,8] feat) => (float[1,4,8,8] out)
<float[4,3,1,1] w = {1,2,3, 1,-1,1, 2,0,1, 0,1,0}, float[4,2,1,1] v = {1,2, 1,-1, 0,1, 1,0}>
{ a = Conv(img, w)
  b = Conv(feat, v)
  out = Add(a, b) }
"""
YAML = """\
model_parameters:
  onnx_model: m.onnx
  march: bayes-e
  output_model_file_prefix: p
  debug_mode: dump_calibration_data
input_parameters:
  input_name: img;feat
  input_type_train: rgb;featuremap
  input_type_rt: nv12;featuremap
  input_layout_train: NCHW;NCHW
  input_space_and_range: bt601_video;regular
  norm_type: data_mean_and_scale;no_preprocess
  mean_value: 103 116 123;None
  scale_value: 0.0078125;None
calibration_parameters:
  cal_data_dir: img;feat
  cal_data_type: float32;float32
  calibration_type: kl
"""
PREFIX = "model_output/p"
FLOAT_STAGES = ("original_float", "optimized_float", "calibrated")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which hb_mapper has been run."""
    folder = tmp_path_factory.mktemp("vendor")
    parse_text(MODEL).save(folder / "m.onnx")
    random = np.random.default_rng(0)
    for name, channels, high in (("img", 3, 255), ("feat", 2, 1)):
        (folder / name).mkdir()
        for index in range(8):
            values = random.uniform(0, high, (1, channels, 8, 8)).astype(np.float32)
            values.tofile(folder / name / f"{index}.bin")
    (folder / "c.yaml").write_text(YAML)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("NPUMAKE_CACHE", str(folder / "cache"))
        assert main(["hb_mapper", "makertbin", "--model-type", "onnx", "-c", "c.yaml"]) == 0
    return folder


@pytest.fixture
def here(built: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(built)
    return built


@pytest.mark.parametrize("name", ALIASES)
def test_every_name_has_its_help(name: str, capsys: Output):
    with pytest.raises(SystemExit) as caught:
        main([name, "--help"])
    assert caught.value.code == 0
    assert f"npumake {name}" in capsys.readouterr().out
    assert name not in VERBS


def test_no_program_of_a_vendor_is_installed_under_its_own_name():
    """It would hide the vendor's, which `npumake handover --run` calls."""
    scripts = (REPO / "pyproject.toml").read_text().partition("[project.scripts]")[2]
    assert scripts.partition("[")[0].strip() == 'npumake = "npumake.cli.main:main"'


def test_a_bundle_tells_what_it_is_fed_and_how_it_was_calibrated(here: Path, capsys: Output):
    assert main(["hb_model_info", f"{PREFIX}.hybrid"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    image = shown.partition("input info : img -")[2].partition("img end")[0]
    for said in (
        *("input_type_rt : nv12", "input_type_train : rgb", "input_layout_train : NCHW"),
        *("input_space&range : bt601_video", "mean_value : 103,116,123,", "offset : 128"),
        *("scale_value : 0.0078125", "norm_type : data_mean_and_scale"),
    ):
        assert said in image
    feature = shown.partition("input info : feat -")[2].partition("feat end")[0]
    for said in ("input_type_rt : featuremap", "norm_type : no_preprocess", "offset : 0"):
        assert said in feature
    assert "calibration_type : kl" in shown


COMMANDS: dict[str, tuple[list[str], str]] = {
    "hb_perf": (["hb_perf", f"{PREFIX}.hybrid"], "p"),
    "hb_pack": (["hb_pack", f"{PREFIX}.hybrid", "-o", "comb.hybrid"], "packed 1 models"),
    "hb_model_modifier": (["hb_model_modifier", f"{PREFIX}.hybrid"], "Nodes that can be deleted"),
    "hb_model_verifier": (
        ["hb_model_verifier", "-q", f"{PREFIX}_quantized_model.onnx", "-b", f"{PREFIX}.hybrid"],
        "PASSED",
    ),
    "hb_verifier, cosine": (
        ["hb_verifier", "-m", f"{PREFIX}_optimized_float_model.onnx,{PREFIX}_quantized_model.onnx"],
        "TensorName CosineSimilarity\nout ",
    ),
    "hb_verifier, equal": (
        ["hb_verifier", "-m", f"{PREFIX}_quantized_model.onnx,{PREFIX}.hybrid", "-c", "4"],
        "out: consistent, 0 mismatches",
    ),
    "hrt_model_exec model_info": (
        ["hrt_model_exec", "model_info", "--model_file", f"{PREFIX}.hybrid"],
        "input info : img",
    ),
    "hrt_model_exec perf": (
        [
            *("hrt_model_exec", "perf", "--model_file", f"{PREFIX}.hybrid", "--model_name="),
            *("--core_id=1", "--frame_count=3", "--perf_time=0", "--thread_num=1"),
        ],
        "Frame count is: 3",
    ),
    "hrt_model_exec infer": (
        [
            *("hrt_model_exec", "infer", "--model_file", f"{PREFIX}.hybrid", "--enable_dump=true"),
            *("--input_file", "img/0.bin,feat/0.bin"),
        ],
        "out: float32[1, 4, 8, 8]",
    ),
    "bench": (["bench", "--model_file", f"{PREFIX}.hybrid", "--frame_count=2"], "count is: 2"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_vendor_s_command_does_what_it_does_there(here: Path, capsys: Output, name: str):
    command, expected = COMMANDS[name]
    assert main(command) == 0
    assert expected in capsys.readouterr().out


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (["bench"], "which model?"),
        (["hb_verifier", "-m", "one.onnx"], "1 models, not two"),
        (["hrt_model_exec", "infer", "--model_file", f"{PREFIX}.hybrid"], "no input files"),
        (
            [
                *("hrt_model_exec", "infer", "--model_file", f"{PREFIX}.hybrid"),
                *("--input_file", "a,b,c"),
            ],
            "3 files for 2 inputs",
        ),
    ],
)
def test_one_clear_error(here: Path, capsys: Output, command: list[str], expected: str):
    assert main(command) == 2
    assert expected in capsys.readouterr().err


def test_two_models_that_differ_fail_the_verifier(here: Path):
    files = f"{PREFIX}_optimized_float_model.onnx,{PREFIX}.hybrid"
    assert main(["hb_verifier", "-m", files, "-c", "6"]) == 6


@pytest.mark.parametrize("file", [f"{PREFIX}_quantized_model.onnx", f"{PREFIX}.hybrid"])
def test_pixels_are_fed_as_the_manual_s_sample_feeds_them(here: Path, file: str):
    """uint8, float pixels, and int8 that is less the offset already, are one image."""
    session = HB_ONNXRuntime(model_file=file)
    port = session.get_inputs()[0]
    pixels = np.random.default_rng(1).integers(0, 256, port.shape)
    features = np.zeros((1, 2, 8, 8), np.int8)
    expected = Session(file).run(
        None, {"img": (pixels - 128).astype(port.dtype), "feat": features.astype(np.float32)}
    )
    fed = {
        "uint8": pixels.astype(np.uint8),
        "float32": pixels.astype(np.float32),
        "float64": pixels.astype(np.float64),
        "int8": (pixels - 128).astype(np.int8),
    }
    for kind, image in fed.items():
        feed = {"img": image, "feat": features}
        made = session.run(session.output_names, feed, input_offset=128)
        assert np.array_equal(made[0], expected[0]), kind
    shifted = {"img": (pixels - 128).astype(np.float32), "feat": features.astype(np.float32)}
    assert np.array_equal(session.run_feature(None, shifted, input_offset=0)[0], expected[0])
    assert np.array_equal(HBRuntime(file).run(None, shifted)[0], expected[0])


def test_a_session_tells_what_the_vendors_sessions_tell(here: Path):
    session = HB_ONNXRuntime(model_file=f"{PREFIX}_quantized_model.onnx")
    session.set_dim_param(0, 0, "?")
    assert session.layout == ["NHWC", "NCHW"]
    assert session.input_shapes == [[1, 8, 8, 3], [1, 2, 8, 8]]
    assert session.input_types == ["int8", "float32"]
    assert (session.output_shapes, session.output_types) == ([[1, 4, 8, 8]], ["float32"])


def test_the_older_name_of_the_outputs_is_taken_alone(here: Path):
    session = HBRuntime(f"{PREFIX}.hybrid")
    feeds = {p.name: np.zeros(p.shape, np.float32) for p in session.get_inputs()}
    expected = session.run(["out"], feeds)
    assert np.array_equal(session.run(input_feed=feeds, output_name=["out"])[0], expected[0])
    with pytest.raises(GraphError, match="both `output_names` and `output_name`"):
        session.run(["out"], feeds, output_name=["out"])


@pytest.mark.parametrize(
    ("stage", "expected"),
    [
        *((stage, ([1, 3, 8, 8], "float32")) for stage in FLOAT_STAGES),
        ("quantized", ([1, 8, 8, 3], "int8")),
    ],
)
def test_a_stage_file_is_fed_as_the_manual_says(here: Path, stage: str, expected: Any):
    """nv12 pictures are codes with their channels last in `quantized` alone."""
    image, features = Session(f"{PREFIX}_{stage}_model.onnx").get_inputs()
    assert (list(image.shape), image.dtype.name) == expected
    assert (list(features.shape), features.dtype.name) == ([1, 2, 8, 8], "float32")


def test_debug_mode_dumps_what_the_float_stages_are_fed(here: Path, capsys: Output):
    folder = here / "model_output" / "calibration_data"
    raw = np.fromfile(here / "feat" / "3.bin", np.float32).reshape(1, 2, 8, 8)
    np.testing.assert_array_equal(np.load(folder / "feat" / "3.npy"), raw)
    assert np.load(folder / "img" / "7.npy").shape == (1, 3, 8, 8)
    command = ["hmct-debugger", "get-sensitivity-of-nodes", f"{PREFIX}_calibrated_model.onnx"]
    assert main([*command, str(folder)]) == 0
    assert "cosine-similarity" in capsys.readouterr().out


@pytest.mark.parametrize("stage", [*FLOAT_STAGES, "quantized"])
def test_info_of_a_stage_file_tells_its_inputs(here: Path, capsys: Output, stage: str):
    assert main(["hb_model_info", f"{PREFIX}_{stage}_model.onnx"]) == 0
    kind = "int8[1, 8, 8, 3]" if stage == "quantized" else "float32[1, 3, 8, 8]"
    assert f"model input: img {kind}" in capsys.readouterr().out


@pytest.mark.slow
def test_the_layout_that_is_fed_is_that_of_the_codes_alone(
    built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    for name in ("m.onnx", "img", "feat"):
        (tmp_path / name).symlink_to(built / name)
    rgb = YAML.replace("nv12;", "rgb;").replace(
        "  input_space_and_range: bt601_video;regular\n", ""
    )
    text = rgb.replace("  norm_type", "  input_layout_rt: NHWC;NCHW\n  norm_type")
    (tmp_path / "c.yaml").write_text(text)
    assert main(["hb_mapper", "makertbin", "--model-type", "onnx", "-c", "c.yaml"]) == 0
    for stage in (*FLOAT_STAGES, "quantized"):
        image = Session(f"{PREFIX}_{stage}_model.onnx").get_inputs()[0]
        assert image.shape[1] == (8 if stage == "quantized" else 3)
    command = ["-q", f"{PREFIX}_quantized_model.onnx", "-b", f"{PREFIX}.hybrid"]
    assert main(["hb_model_verifier", *command]) == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (
            "net (float[1,8] x) => (float[1,4] y) <float[8,4] w> { y = MatMul(x, w) }",
            "input `x` has 2 dimensions",
        ),
        (
            "net (float[2,3,8,8] x) => (float[2,3,8,8] y) { y = Relu(x) }",
            "input `x` has a batch of 2",
        ),
        (
            "net (float[1,3,8,8] x) => (float[1,3,8,8] y) { y = Softmax<axis=1>(x) }",
            "no node can execute on BPU",
        ),
    ],
)
def test_the_checker_tells_what_the_tool_refuses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output, model: str, expected: str
):
    monkeypatch.chdir(tmp_path)
    model = model.replace("<float[8,4] w>", "<float[8,4] w = {" + ",".join("1" * 32) + "}>")
    parse_text(f'<ir_version: 7, opset_import: ["" : 11]>\n{model}').save(tmp_path / "m.onnx")
    arguments = ["--model-type", "onnx", "--march", "bayes-e", "--model", "m.onnx"]
    assert main(["hb_mapper", "checker", *arguments]) == 0
    assert expected in capsys.readouterr().out.replace("\n", " ")
    assert expected in Path("hb_mapper_checker.log").read_text().replace("\n", " ")


@pytest.mark.slow
def test_a_rule_for_an_operator_that_the_model_lacks_is_a_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
):
    """The YAML of published detectors asks for softmax, whatever their model has."""
    parse_text(MODEL).save(tmp_path / "m.onnx")
    for name, channels in (("img", 3), ("feat", 2)):
        (tmp_path / name).mkdir()
        for index in range(8):
            values = np.random.default_rng(index).integers(0, 255, (1, channels, 8, 8))
            np.save(tmp_path / name / f"{index}.npy", values.astype(np.uint8))
    config = "{op_config: {softmax: {qtype: int8}}, node_config: {nobody: {qtype: int16}}}"
    (tmp_path / "c.yaml").write_text(
        "model_parameters: {onnx_model: m.onnx, march: nash-e}\n"
        "input_parameters: {input_name: [img, feat]}\n"
        "calibration_parameters: {cal_data_dir: [img, feat], calibration_type: max, "
        f"quant_config: {config}}}\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NPUMAKE_CACHE", str(tmp_path / "cache"))
    assert main(["hb_compile", "-c", "c.yaml"]) == 0
    log = Path("hb_compile.log").read_text().replace("\n", " ")
    assert "the rule for `Softmax` has no effect" in log
    assert "the rule for `nobody` has no effect" in log
    assert (tmp_path / "model_output" / "hb_compile.log").is_file()


@pytest.mark.parametrize(("asked", "expected"), [("3", 3), (" 2 ", 2)])
def test_the_vendor_s_variable_is_the_number_of_threads(
    monkeypatch: pytest.MonkeyPatch, asked: str, expected: int
):
    monkeypatch.delenv("NPUMAKE_THREADS", raising=False)
    monkeypatch.setenv("PARALLEL_PROCESS_NUM", asked)
    assert threads() == expected
    monkeypatch.setenv("NPUMAKE_THREADS", "1")
    assert threads() == 1


def test_an_error_about_a_sample_names_its_file_from_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NPUMAKE_CACHE", str(tmp_path / "cache"))
    parse_text(MODEL).save(tmp_path / "m.onnx")
    for name in ("img", "feat"):
        (tmp_path / name).mkdir()
        np.zeros(5, np.float32).tofile(tmp_path / name / f"{name}.bin")
    (tmp_path / "c.yaml").write_text(YAML)
    with pytest.raises(SystemExit):
        main(["hb_mapper", "makertbin", "--model-type", "onnx", "-c", "c.yaml"])
    log = Path("hb_mapper_makertbin.log").read_text()
    assert "set `cal_data_type` to the type of raw numbers" in log
    assert "--> img/img.bin" in log
