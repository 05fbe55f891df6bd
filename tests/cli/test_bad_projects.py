"""Bad input gives one clear error: what, where, hint; the exit code says whose mistake it is."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from npumake.cli.main import main
from workspaces import Workspace


def replaced(pattern: str, replacement: str) -> Callable[[Workspace], None]:
    def change(workspace: Workspace) -> None:
        path = workspace.project / "project.yaml"
        text = path.read_text()
        changed = re.sub(pattern, replacement, text, count=1)
        assert changed != text
        path.write_text(changed)

    return change


def model(data: Callable[[bytes], bytes]) -> Callable[[Workspace], None]:
    def change(workspace: Workspace) -> None:
        path = workspace.project / "model.onnx"
        path.write_bytes(data(path.read_bytes()))

    return change


def sample(array: np.ndarray) -> Callable[[Workspace], None]:
    return lambda workspace: np.save(workspace.project / "samples" / "0003.npy", array)


def open_batch(workspace: Workspace) -> None:
    import onnx

    path = workspace.project / "model.onnx"
    graph = onnx.load(path)
    graph.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "N"
    onnx.save(graph, path)


def removed(name: str) -> Callable[[Workspace], None]:
    return lambda workspace: (workspace.project / name).unlink()


YAML = "projects/digits/project.yaml"
PIXELS = np.zeros((1, 1, 8, 8), np.uint8)

WRONG: dict[str, tuple[Callable[[Workspace], None], int, list[str]]] = {
    "unknown key": (
        replaced("calibration:", "calibraton:"),
        2,
        ["error: unknown key `calibraton`", f"--> {YAML}:16:1", "did you mean `calibration`?"],
    ),
    "mistyped value": (
        replaced("method: max", "method: maxx"),
        2,
        ["`calibration.method` cannot be `maxx`", f"--> {YAML}:17:11", "allowed: `max`"],
    ),
    "value of the wrong type": (replaced("offset: 128", "offset: yes"), 2, [f"{YAML}:8:13"]),
    "unknown target": (
        replaced("  - rdk-x5", "  - rdk-x6"),
        2,
        ["error: unknown target `rdk-x6`", f"--> {YAML}:20:5", "did you mean `rdk-x5`?"],
    ),
    "no target": (replaced(r"targets:\n(  - .*\n)+", "targets: []\n"), 2, ["no target", YAML]),
    "unknown input": (
        replaced("inputs:\n  image:", "inputs:\n  imgae:"),
        2,
        ["the model has no input `imgae`", f"--> {YAML}:7:3", "did you mean `image`?"],
    ),
    "missing model": (
        removed("model.onnx"),
        2,
        ["error: no file `model.onnx`", f"--> {YAML}:4:9"],
    ),
    "missing samples": (
        replaced(r"samples/\*", "smaples/*"),
        2,
        ["error: no file matches `smaples/*.npy`", f"--> {YAML}:14:12"],
    ),
    "variable that is not set": (
        replaced("model.onnx", "${ENV:NPUMAKE_NOWHERE}/model.onnx"),
        2,
        ["error: the environment variable `NPUMAKE_NOWHERE` is not set", f"--> {YAML}:4:9"],
    ),
    "target overlay of a shared section": (
        replaced("- ara240", "- ara240: {inputs: {image: {scale: 1}}}"),
        2,
        [
            "error: `inputs` cannot differ by target: `original_float` is built once for all",
            f"--> {YAML}:21:14",
            "hint: write a variant",
        ],
    ),
    "unknown target with an overlay": (
        replaced("- ara240", "- ara24: {calibration: {method: kl}}"),
        2,
        ["error: unknown target `ara24`", f"--> {YAML}:21:5", "did you mean `ara240`?"],
    ),
    "variant of nothing known": (
        replaced("targets:", "variants:\n  p9:\n    calibration: {methd: kl}\ntargets:"),
        2,
        ["error: unknown key `methd`", f"--> {YAML}:21:19", "did you mean `method`?"],
    ),
    "variant with files that are not there": (
        replaced("targets:", "variants: {p9: {data: {image: {files: no/*.npy}}}}\ntargets:"),
        2,
        ["error: no file matches `no/*.npy`", f"--> {YAML}:19:39"],
    ),
    "empty model": (model(lambda data: b""), 3, ["not an ONNX model", "model.onnx"]),
    "corrupt model": (model(lambda data: b"\xff" * 100), 3, ["not an ONNX model", "model.onnx"]),
    "truncated model": (model(lambda data: data[:-500]), 3, ["not a", "ONNX model", "model.onnx"]),
    "sample of the wrong shape": (
        sample(np.zeros((1, 1, 9, 8), np.uint8)),
        2,
        ["a sample of shape [1, 1, 9, 8], the input takes [1, 1, 8, 8]", "0003.npy"],
    ),
    "sample of the wrong dtype": (
        sample(PIXELS.astype(np.float64)),
        2,
        ["a sample of float64, the input takes uint8 or float32", "0003.npy"],
    ),
    "sample out of range": (
        sample(PIXELS.astype(np.float32) - 3),
        2,
        ["values outside 0..255: 0003.npy (-3..-3)", "allow: [range]"],
    ),
    "blank sample": (
        sample(PIXELS),
        2,
        ["samples with one value all over: 0003.npy (0)", f"--> {YAML}:13:3", "allow: [blank]"],
    ),
    "sample twice": (
        lambda w: (w.project / "samples" / "1.npy").write_bytes(
            (w.project / "samples" / "0003.npy").read_bytes()
        ),
        2,
        ["the same sample more than once: 1.npy = 0003.npy", "allow: [duplicate]"],
    ),
    "few samples": (
        replaced(r"samples/\*", "samples/000[0-4]"),
        2,
        ["5 samples, at least 8 are needed", "allow: [few]"],
    ),
    "fed otherwise than trained": (
        replaced("scale: 0.0625", "scale: 16"),
        2,
        ["the values are 255 times too large", f"--> {YAML}:7:3", "allow: [preprocessing]"],
    ),
    "neither files nor noise": (
        replaced(r"files: samples/\*.npy", "member: x"),
        2,
        ["input `image` needs either files or noise", f"--> {YAML}:13:3"],
    ),
    "a step that does not suit": (
        replaced(r"(files: samples/\*.npy)", r"\1\n    transforms: [nv12_to_yuv444]"),
        2,
        ["64 values are not an NV12 image of 8 x 8", f"--> {YAML}:15:18"],
    ),
    "pickled sample": (
        sample(np.array([{"a": 1}], dtype=object)),
        2,
        ["not a .npy file of numbers", "0003.npy"],
    ),
    "dynamic dimension without shape": (
        open_batch,
        3,
        ["input `image` leaves a dimension open: [N, 1, 8, 8]", f"--> {YAML}:7:3", "shape:"],
    ),
    "shape that does not fit": (
        replaced("    offset: 128", "    shape: [1, 3, 8, 8]\n    offset: 128"),
        2,
        ["shape [1, 3, 8, 8] does not fit input `image`", f"--> {YAML}:8:12"],
    ),
    "scale for other channels": (
        replaced("scale: 0.0625", "scale: [1, 2, 3]"),
        2,
        ["3 values for 1 channels", f"--> {YAML}:10:12"],
    ),
    "prefix that is a path": (
        replaced("targets:", "compile: {prefix: ../digits}\ntargets:"),
        2,
        ["`../digits` is not a file name", f"--> {YAML}:19:19"],
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", WRONG)
def test_one_clear_error(built: Workspace, name: str) -> None:
    change, code, expected = WRONG[name]
    change(built)
    run = built.npumake("build", check=False)
    output = run.stdout + run.stderr
    assert [text for text in expected if text not in output] == [], output
    assert run.returncode == code
    assert output.count("error: ") == 1
    assert "Traceback" not in output
    assert not list((built.project / "out").glob(".tmp*"))


@pytest.mark.slow
def test_a_broken_project_does_not_keep_the_others_from_building(fresh: Workspace) -> None:
    broken = fresh.root / "projects" / "broken"
    broken.mkdir()
    (broken / "project.yaml").write_text("modle: {path: m.onnx}\n")
    fresh.npumake("build", "digits:original_float")
    run = fresh.npumake("build", "broken", check=False)
    assert run.returncode == 2
    assert "did you mean `model`?" in run.stdout


@pytest.mark.slow
def test_what_worked_before_is_still_there_after_a_mistake(built: Workspace) -> None:
    before = built.digests()
    yaml = built.project / "project.yaml"
    good = yaml.read_text()
    yaml.write_text(good.replace("model.onnx", "other.onnx"))
    assert built.npumake("build", check=False).returncode == 2
    assert built.digests() == before
    yaml.write_text(good)
    assert '"would run"' not in built.npumake("list", "--json").stdout


def test_no_project_here(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for verb in (["list"], ["why"]):
        assert main(verb) == 2
        assert "error: no project here" in capsys.readouterr().err
