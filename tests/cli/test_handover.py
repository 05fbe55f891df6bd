"""A hand-over says what the project says: read back through the dialect it is the same build."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
import yaml

from npumake import digest
from npumake.bundle.archive import CALIBRATION, INPUTS, Bundle
from npumake.cli.main import main
from npumake.cli.vendors.project import build
from npumake.data.snapshot import read_snapshot
from npumake.graph import parse_text
from workspaces import Workspace, lay_out, shared_data

# chip → what a project must say beside the model to speak the dialect of its tool
TOOLS = {
    "rdk-x5": {"dialect": "hb_mapper", "config": "hb_mapper.yaml"},
    "nash-e": {"dialect": "hb_compile", "config": "hb_compile.yaml"},
    "sl1680": {
        "dialect": "synap",
        "config": "meta.yaml",
        "model": {"path": "model.onnx"},
        "targets": ["sl1680"],
        "compile": {"prefix": "digits"},
    },
}
# The vendors' commands, as their documents have them: the last words of a stand-in's checks.
COMMANDS = {
    "rdk-x5": "hb_mapper makertbin --config hb_mapper.yaml --model-type onnx",
    "nash-e": "hb_compile -c hb_compile.yaml",
    "sl1680": "synap convert --model model.onnx --meta meta.yaml --target SL1680 "
    "--out-dir model_output",
}
VERSIONS = {"rdk-x5": "--version", "nash-e": "--version", "sl1680": "version"}
PRODUCTS = {"rdk-x5": "digits.bin", "nash-e": "digits.hbm", "sl1680": "model.synap"}
STAND_IN = """\
#!{python}
import glob, os, pathlib, sys, yaml
if sys.argv[1:] == [{version!r}]:
    print("Start")
    print("{name} {release}")
    sys.exit()
assert [os.path.basename(sys.argv[0]), *sys.argv[1:]] == {command!r}.split(), sys.argv
said = yaml.safe_load(open({config!r}))
groups = said.get("model_parameters", {{}})
assert os.path.isfile(groups.get("onnx_model", "model.onnx"))
folder = said.get("calibration_parameters", {{}}).get("cal_data_dir", "calibration/0_image")
assert len(glob.glob(folder + "/*")) == 64, folder
print("Start", *sys.argv)
if os.environ.get("STAND_IN") == "fails":
    print("ERROR-OCCUR-DURING hbdk.compile: no license")
    sys.exit(3)
out = pathlib.Path(groups.get("working_dir", "model_output"))
out.mkdir(exist_ok=True)
if os.environ.get("STAND_IN") != "idle":
    (out / {product!r}).write_bytes(b"made")
"""


def project(root: Path, target: str) -> Workspace:
    workspace = lay_out(root)
    file = workspace.project / "project.yaml"
    said = file.read_text().partition("\ntargets:")[0]
    if target == "sl1680":
        said = said.replace("offset: 128", "offset: 0")  # which is how SyNAP feeds, floats
        for sample in workspace.project.glob("samples/*.npy"):
            np.save(sample, np.load(sample).astype(np.float32))
        said += "\nquantization: {types: {'*': uint8}, scheme: asymmetric_affine}\n"
    file.write_text(f"{said}\ntargets: [{target}]\n")
    return workspace


def handed(root: Path, target: str) -> Path:
    workspace = project(root / "w", target)
    out = root / "handed"
    assert main(["handover", str(workspace.project), "--target", target, "--out", str(out)]) == 0
    return out


def tree(folder: Path) -> dict[str, str]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {path.relative_to(folder).as_posix(): digest.of_file(path) for path in files}


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, tmp_path_factory, monkeypatch):
    """One store for all tests: what one has built the others recall."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NPUMAKE_CACHE", str(tmp_path_factory.getbasetemp() / "handover"))


@pytest.mark.slow
@pytest.mark.parametrize("target", TOOLS)
def test_read_back_through_its_dialect_it_compiles_to_the_same_integers(tmp_path, target):
    out = handed(tmp_path, target)
    (out / "project.yaml").write_text(yaml.safe_dump(TOOLS[target]))
    (out / "dodo.py").write_text("")
    made = []
    for folder in (out, tmp_path / "w/projects/digits"):
        os.chdir(folder)
        assert main(["build"]) == 0
        bundle = Bundle.load(folder / f"out/digits.{target}.hybrid")
        # The tool has defaults of its own, and its dialect spells the inputs out.
        origin = {k: v for k, v in bundle.provenance.items() if k not in (INPUTS, CALIBRATION)}
        made.append(replace(bundle, settings={}, provenance=origin).to_bytes())
    assert made[0] == made[1]


@pytest.mark.slow
@pytest.mark.parametrize("target", TOOLS)
def test_it_is_the_same_files_each_time_and_lists_them(tmp_path, target):
    first, second = handed(tmp_path / "a", target), handed(tmp_path / "a/deeper", target)
    assert tree(first) == tree(second)
    listed = json.loads((first / "handover.json").read_text())["sha256"]
    assert listed == {name: x for name, x in tree(first).items() if name != "handover.json"}
    assert str(tmp_path) not in "".join(f.read_text("latin-1") for f in first.rglob("*.*"))
    assert "never with the tool itself nor on the chip" in (first / "README.txt").read_text()


@pytest.mark.parametrize("target", ["rdk-x5", "nash-e", "sl1680", "ara240"])
def test_a_frozen_input_is_a_constant_of_the_model_that_is_handed_over(tmp_path, target):
    """No tool's YAML can freeze one, and none reads an If."""
    text = """<ir_version: 8, opset_import: ["" : 13]>
        agraph (float[N,4] x, int64 rate) => (float[N,4] y) <int64 wide = {16000}> {
        at = Equal(rate, wide)
        y = If(at) <then_branch = g () => (float[N,4] a) { a = Relu(x) },
                    else_branch = h () => (float[N,4] b) { b = Neg(x) }> }"""
    (tmp_path / "m.onnx").write_bytes(parse_text(text).to_bytes())
    (tmp_path / "project.yaml").write_text(
        f"model: {{path: m.onnx}}\ntargets: [{target}]\ndata: {{x: {{random: 8}}}}\n"
        "inputs: {x: {shape: [1, 4]}, rate: {value: 16000}}\ncalibration: {method: max}\n"
    )
    out = tmp_path / "handed"
    assert main(["handover", ".", "--target", target, "--out", str(out)]) == 0
    proto = onnx.load(out / "model.onnx")
    assert [value.name for value in proto.graph.input] == ["x"]
    assert [node.op_type for node in proto.graph.node] == ["Relu"]
    assert proto.opset_import[0].version == 13
    assert "rate" not in next(out.glob("*.yaml")).read_text()


@pytest.mark.slow
def test_samples_are_in_each_tool_s_own_form(tmp_path):
    folders = {
        target: handed(tmp_path / target, target) / "calibration/0_image" for target in TOOLS
    }
    samples = sorted((tmp_path / "rdk-x5/w/projects/digits/samples").glob("*.npy"))
    pixels = np.load(samples[0]).reshape(1, 1, 8, 8).astype(np.float32)
    bare = np.fromfile(folders["rdk-x5"] / "00000.bin", "<f4").reshape(1, 1, 8, 8)
    np.testing.assert_array_equal(bare, pixels)
    for target in ("nash-e", "sl1680"):
        np.testing.assert_array_equal(np.load(folders[target] / "00000.npy"), pixels / 16)


@pytest.fixture
def stand_in(tmp_path, monkeypatch):
    """What puts an executable of the vendor's name on PATH, which checks how it is called."""

    def put(target: str, product: str = "", release: str = "1.0") -> None:
        command = COMMANDS[target]
        file = tmp_path / "bin" / command.split()[0]
        file.parent.mkdir(exist_ok=True)
        config = TOOLS[target]["config"]
        text = STAND_IN.format(
            python=sys.executable,
            command=command,
            config=config,
            product=product or PRODUCTS[target],
            version=VERSIONS[target],
            name=file.name,
            release=release,
        )
        file.write_text(text)
        file.chmod(0o755)
        monkeypatch.setenv("PATH", f"{file.parent}{os.pathsep}{os.environ['PATH']}")

    return put


def run_it(tmp_path: Path, target: str) -> int:
    folder = project(tmp_path / "w", target).project
    out = str(tmp_path / "handed")
    return main(["handover", str(folder), "--target", target, "--out", out, "--run"])


@pytest.mark.slow
@pytest.mark.parametrize("target", TOOLS)
def test_run_calls_the_vendor_s_command_and_keeps_its_log(tmp_path, stand_in, capsys, target):
    stand_in(target)
    assert run_it(tmp_path, target) == 0
    product = tmp_path / "handed/model_output" / PRODUCTS[target]
    assert product.read_bytes() == b"made"
    assert (tmp_path / "handed/convert.log").read_text().startswith("Start")
    assert PRODUCTS[target] in capsys.readouterr().out


@pytest.mark.parametrize("target", TOOLS)
def test_the_script_is_the_same_command(tmp_path, stand_in, target):
    out = handed(tmp_path, target)
    stand_in(target)
    assert stat.S_IMODE((out / "convert.sh").stat().st_mode) == 0o755
    subprocess.run([str(out / "convert.sh")], check=True, cwd="/", stdout=subprocess.DEVNULL)
    assert (out / "model_output" / PRODUCTS[target]).is_file()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("fails", "hb_compile fails with exit status 3:\nStart"),
        ("fails", "ERROR-OCCUR-DURING hbdk.compile: no license"),
        ("idle", "hb_compile succeeds and leaves no digits.hbm"),
    ],
)
def test_its_failure_is_ours_with_its_last_words(
    tmp_path, stand_in, monkeypatch, capsys, how, words
):
    stand_in("nash-e")
    monkeypatch.setenv("STAND_IN", how)
    assert run_it(tmp_path, "nash-e") == 4
    assert words in capsys.readouterr().err


def test_without_its_command_run_says_so_and_the_files_are_there(tmp_path, capsys):
    assert run_it(tmp_path, "nash-e") == 4
    assert "`hb_compile` is not on PATH" in capsys.readouterr().err
    assert (tmp_path / "handed/handover.json").is_file()


@pytest.mark.slow
def test_a_project_in_the_vendor_s_words_keeps_them(tmp_path):
    workspace = lay_out(tmp_path)
    (workspace.project / "project.yaml").write_text(
        "dialect: hb_mapper\nconfig: vendor/rdk_x5.yaml\n"
    )
    given = [str(workspace.project), "--target", "rdk-x5", "--out", "handed"]
    assert main(["handover", *given]) == 0
    own = yaml.safe_load((workspace.project / "vendor/rdk_x5.yaml").read_text())
    own["model_parameters"] |= {"onnx_model": "model.onnx", "working_dir": "model_output"}
    own["calibration_parameters"] |= {
        "cal_data_dir": "./calibration/0_image",
        "cal_data_type": "float32",
        "preprocess_on": False,
    }
    assert yaml.safe_load((tmp_path / "handed/hb_mapper.yaml").read_text()) == own


def test_what_the_vendor_has_no_word_for_is_told(tmp_path, capsys):
    workspace = project(tmp_path, "rdk-x5")
    file = workspace.project / "project.yaml"
    said = file.read_text().replace("method: max", "method: mse")
    file.write_text(said + "quantization: {equalize: true, cpu: [pool, down_conv...]}\n")
    given = [str(workspace.project), "--target", "rdk-x5", "--out", "handed"]
    assert main(["handover", *given]) == 0
    shown = capsys.readouterr().out
    listed = json.loads((tmp_path / "handed/handover.json").read_text())["not_said"]
    readme = (tmp_path / "handed/README.txt").read_text()
    assert listed == [
        "calibration.method: mse; the tool searches on its own",
        "quantization.equalize",
    ]
    for what in listed:
        assert f"hb_mapper.yaml cannot express `{what}`" in shown
        assert what in readme


def test_another_folder_is_not_written_to(tmp_path, capsys):
    (out := tmp_path / "handed").mkdir()
    (out / "mine").write_text("")
    folder = str(project(tmp_path, "rdk-x5").project)
    assert main(["handover", folder, "--target", "rdk-x5", "--out", str(out)]) == 2
    assert "a folder that holds something else" in capsys.readouterr().err
    assert [path.name for path in out.iterdir()] == ["mine"]


def test_a_target_that_is_compiled_here_needs_none(tmp_path, capsys):
    folder = str(project(tmp_path, "tflite").project)
    assert main(["handover", folder, "--target", "tflite", "--out", "handed"]) == 2
    assert "`tflite` needs no hand-over" in capsys.readouterr().err


@pytest.mark.slow
def test_ara2_gets_the_form_of_studio_and_has_no_command(tmp_path, capsys):
    folder = str(project(tmp_path, "ara240").project)
    given = ["handover", folder, "--target", "ara240", "--out", "handed"]
    assert main(given) == 0
    form = yaml.safe_load((tmp_path / "handed/form.yaml").read_text())
    (snapshot,) = (tmp_path / "handed").glob("*.safetensors")
    assert form == {"model": "model.onnx", "int16_mode": "int8", "calibration": snapshot.name}
    assert "cannot express `inputs.image: Studio's models are fed" in capsys.readouterr().out
    assert main([*given, "--run"]) == 2
    assert "has no command to run" in capsys.readouterr().err


@pytest.mark.slow
def test_ara2_gets_the_samples_in_the_snapshot_that_its_contract_asks_for(tmp_path):
    """Read back with all the checks of a consumer: every pixel, and the normalization told."""
    workspace = project(tmp_path, "ara240")
    first, second = tmp_path / "a", tmp_path / "b"
    for out in (first, second):
        given = ["handover", str(workspace.project), "--target", "ara240", "--out", str(out)]
        assert main(given) == 0
    assert tree(first) == tree(second)
    (file,) = first.glob("calibration-local-*.safetensors")
    snapshot = read_snapshot(file, (8, 8))
    samples = sorted(workspace.project.glob("samples/*.npy"))
    assert snapshot.count == len(samples)
    for index, sample in enumerate(samples):
        pixels = np.load(sample).reshape(1, 8, 8)
        np.testing.assert_array_equal(snapshot.sample("image", index), pixels)
    assert snapshot.normalization.is_that_of(0.0, 1 / 16)


@pytest.mark.slow
def test_samples_that_are_no_pixels_make_no_snapshot(tmp_path, capsys):
    workspace = project(tmp_path, "ara240")
    for sample in workspace.project.glob("samples/*.npy"):
        np.save(sample, np.load(sample).astype(np.float32) / 3)
    file = workspace.project / "project.yaml"
    file.write_text(file.read_text().replace("offset: 128", "offset: 0"))
    given = ["handover", str(workspace.project), "--target", "ara240", "--out", "handed"]
    assert main(given) == 0
    assert "no pixels of 0..255" in capsys.readouterr().out
    assert not list((tmp_path / "handed").glob("*.safetensors"))


SQUEEZENET = shared_data() / "models/classification/squeezenet1.1_winml_fp32_DERIVED.onnx"
PHOTOS = """\
model: {path: model.onnx}
inputs:
  "*": {type: bgr, fed_type: nv12, offset: 128, mean: [103.939, 116.779, 123.68]}
data:
  "*":
    files: images/*.jpg
    channels: bgr
    transforms: [{short_side_resize: {short_size: 256}}, {center_crop: {crop_size: 224}}, hwc2chw]
calibration: {method: max}
targets: [rdk-x5, nash-e]
"""


@pytest.mark.slow
@pytest.mark.skipif(not SQUEEZENET.is_file(), reason="the real models are not here")
@pytest.mark.parametrize("target", ["rdk-x5", "nash-e"])
def test_a_classifier_of_photos_fed_nv12_is_the_same_graph(tmp_path, target):
    folder = tmp_path / "squeezenet"
    (folder / "images").mkdir(parents=True)
    (folder / "model.onnx").write_bytes(SQUEEZENET.read_bytes())
    for photo in sorted(shared_data().glob("images/imagenet500/*.jpg"))[:8]:
        (folder / "images" / photo.name).write_bytes(photo.read_bytes())
    (folder / "project.yaml").write_text(PHOTOS)
    out = tmp_path / "handed"
    assert main(["handover", str(folder), "--target", target, "--out", str(out)]) == 0
    (out / "project.yaml").write_text(yaml.safe_dump(TOOLS[target]))
    made = []
    for one in (folder, out):
        build(one, lambda node: node.stage == "quantized" and node.target == target)
        made.append(digest.of_file(one / f"out/quantized.{target}.onnx"))
    assert made[0] == made[1]
