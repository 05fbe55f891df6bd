"""Compilers in interpreters of their own. The real ones run where a variable of the environment
names an interpreter that has them; OpenVINO's is this one, where nothing else is said."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from cli.detectors import detector
from cli.test_handover import project
from npumake.compilers.adapters.adapter import ADAPTERS, adapted, versions
from npumake.compilers.adapters.assets import SCRIPTS
from npumake.compilers.backends import built as built_of
from npumake.detection.carriers import metadata_in
from npumake.detection.notes import metadata_of
from npumake.engine.lower import lowered
from npumake.errors import GraphError, StageError
from npumake.graph import Graph, noted
from npumake.make.code import parsed
from npumake.runtime import Session
from npumake.targets.reader import read_target, target_names

MADE = [name for name in target_names() if read_target(name).backend in ADAPTERS]
STAND_IN = """\
#!{python}
import json, os, sys
assert sys.argv[1] == "-I", sys.argv
if sys.argv[2] == "-c":
    print(*("{release}" for _ in sys.argv[4:]))
    sys.exit()
assert os.path.basename(sys.argv[2]) == {script!r}, sys.argv
assert open({takes!r}, "rb").read() == b"model"
assert json.load(open("options.json")) == {told!r}
print("as it was told")
{act}
"""


def interpreter(folder: Path, monkeypatch: pytest.MonkeyPatch, target: str, act: str) -> None:
    """An executable in place of the target's, that checks how it is called, then acts."""
    chip = read_target(target)
    adapter = ADAPTERS[chip.backend]
    file = folder / "python"
    file.write_text(
        STAND_IN.format(
            python=sys.executable,
            release="1.0",
            script=adapter.script,
            takes=adapter.takes,
            told=dict(chip.backend_options),
            act=act,
        )
    )
    file.chmod(0o755)
    monkeypatch.setenv(adapter.variable, str(file))


@pytest.mark.parametrize("target", MADE)
def test_the_script_of_a_target_is_run_with_its_model_and_what_it_is_told(
    tmp_path, monkeypatch, target
):
    adapter = ADAPTERS[read_target(target).backend]
    act = f"for name in {adapter.makes!r}: open(name, 'w').write(name)"
    interpreter(tmp_path, monkeypatch, target, act)
    made = adapted(adapter, b"model", read_target(target).backend_options)
    assert made == {name: name.encode() for name in adapter.makes}
    assert versions(adapter) == dict.fromkeys(adapter.distributions, "1.0")
    assert (SCRIPTS / adapter.script).is_file()


@pytest.mark.parametrize(
    ("act", "words"),
    [
        ("sys.exit(3)", "rknn-toolkit2 fails with exit status 3:\nas it was told"),
        (
            "raise OSError('no memory')",
            "rknn-toolkit2 fails with exit status 1:\nOSError: no memory",
        ),
        ("", "rknn-toolkit2 succeeds and leaves no model.rknn:\nas it was told"),
    ],
)
def test_its_failure_is_ours_with_its_last_words(tmp_path, monkeypatch, act, words):
    interpreter(tmp_path, monkeypatch, "rk3588", act)
    with pytest.raises(StageError) as caught:
        adapted(ADAPTERS["rknn"], b"model", read_target("rk3588").backend_options)
    assert caught.value.what == words


@pytest.mark.parametrize("named", ["", "/no/such/python", sys.executable])
def test_without_an_interpreter_that_has_it_the_error_says_how_to_get_one(monkeypatch, named):
    monkeypatch.setenv("NPUMAKE_TORQ_PYTHON", named)
    with pytest.raises(StageError) as caught:
        adapted(ADAPTERS["torq"], b"model", {})
    assert caught.value.what == "this target needs torq-compiler, which is not installed"
    assert "X/bin/pip install torq-compiler" in caught.value.hint
    assert "NPUMAKE_TORQ_PYTHON=X/bin/python" in caught.value.hint


def test_an_interpreter_that_answers_something_else_has_not_what_is_needed(tmp_path, monkeypatch):
    (tmp_path / "python").write_text("#!/bin/sh\necho a b c d\n")
    (tmp_path / "python").chmod(0o755)
    monkeypatch.setenv("NPUMAKE_QNN_PYTHON", str(tmp_path / "python"))
    assert versions(ADAPTERS["qnn"]) == {}


@pytest.mark.parametrize("script", sorted(SCRIPTS.glob("*.py")), ids=lambda path: path.stem)
def test_a_script_imports_nothing_of_ours(script):
    assert parsed(script.read_text()).own_modules == ()


def test_every_script_is_an_adapter_s():
    known = {name for each in ADAPTERS.values() for name in (each.script, each.runs) if name}
    assert {path.name for path in SCRIPTS.glob("*.py")} == known


def test_a_script_counts_in_the_key_of_what_it_made(built):
    from npumake.cli.projects import selected

    (build,) = selected(built.root, ["digits"])
    modules = build.memory.code.closure("npumake.stages.compiled").modules
    for adapter in ADAPTERS.values():
        assert f"compilers/adapters/scripts/{adapter.script}" in modules


FORGETFUL = """\
#!{python}
import sys, onnx
if sys.argv[2] == "-c":
    print("1.0", "1.0")
    sys.exit()
model = onnx.load("model.onnx")
del model.metadata_props[:]
model.metadata_props.add(key="made by", value="it")
onnx.save(model, "compiled.onnx")
"""


def test_an_onnx_file_of_a_compiler_has_the_notes_of_a_detector_and_its_own(tmp_path, monkeypatch):
    file = tmp_path / "python"
    file.write_text(FORGETFUL.format(python=sys.executable))
    file.chmod(0o755)
    monkeypatch.setenv("NPUMAKE_QNN_PYTHON", str(file))
    graph, target = detector(), read_target("qnn-htp-v73")
    (tmp_path / "m.onnx").write_bytes(built_of(lowered(graph, "half_even"), graph, target, {}))
    assert metadata_in(tmp_path / "m.onnx") == metadata_of(graph)
    assert Graph.load(tmp_path / "m.onnx").metadata == {"made by": "it", **graph.metadata}
    with pytest.raises(GraphError, match="not an ONNX model"):
        noted(b"no model", {"a": "b"}, "m.onnx")


# -- the real ones -------------------------------------------------------------------------


@pytest.fixture
def real(monkeypatch):
    """What sees to it that the compiler of a target is here, or skips."""

    def need(target: str) -> str:
        adapter = ADAPTERS[read_target(target).backend]
        if adapter.name == "openvino" and importlib.util.find_spec("openvino"):
            monkeypatch.setenv(adapter.variable, os.environ.get(adapter.variable, sys.executable))
        if not versions(adapter):
            pytest.skip(f"{adapter.variable} names no interpreter with {adapter.distributions[0]}")
        return os.environ[adapter.variable]

    return need


def compiled(root: Path, target: str) -> tuple[Path, np.ndarray, np.ndarray]:
    """The file of digits for the target, its samples, and what `quantized` makes of them."""
    workspace = project(root / "w", target)
    workspace.npumake("build")
    (file,) = workspace.project.glob(f"out/digits.{target}.*")
    with np.load(workspace.project / "out/samples.npz") as samples:
        fed = samples["image"]
    session = Session(workspace.project / f"out/quantized.{target}.onnx")
    return file, fed, np.concatenate([session.run(None, {"image": x})[0] for x in fed])


OPENVINO = """\
import numpy, openvino
model = openvino.Core().compile_model("model.xml", "CPU")
numpy.save("y.npy", [model([x])[0][0] for x in numpy.load("x.npy")])
"""
QNN = """\
import numpy, onnxruntime as ort, onnxruntime_qnn as qnn
ort.register_execution_provider_library("qnn", qnn.get_library_path())
options = ort.SessionOptions()
options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
devices = [device for device in ort.get_ep_devices() if device.ep_name == "qnn"]
options.add_provider_for_devices(devices[:1], {"backend_path": qnn.get_qnn_htp_path()})
session = ort.InferenceSession("model.onnx", options)
numpy.save("y.npy", [session.run(None, {"image": x})[0][0] for x in numpy.load("x.npy")])
"""


def ran(folder: Path, python: str, code: str, fed: np.ndarray) -> np.ndarray:
    """What the file in `folder` makes of the samples, run where it was compiled."""
    np.save(folder / "x.npy", fed)
    subprocess.run([python, "-I", "-c", code], cwd=folder, check=True, capture_output=True)
    return np.load(folder / "y.npy")


def agreement(given: np.ndarray, wanted: np.ndarray) -> tuple[float, float]:
    """Cosine of all answers, and how many have the same top class."""
    cosine = np.vdot(given, wanted) / np.linalg.norm(given) / np.linalg.norm(wanted)
    return float(cosine), float(np.mean(given.argmax(-1) == wanted.argmax(-1)))


@pytest.mark.slow
def test_openvino_s_ir_gives_what_the_quantized_model_gives(tmp_path, real):
    python = real("openvino-cpu")
    file, fed, wanted = compiled(tmp_path, "openvino-cpu")
    with zipfile.ZipFile(file) as archive:
        assert archive.namelist() == ["model.xml", "model.bin", "provenance.json"]
        archive.extractall(tmp_path)
    cosine, same = agreement(ran(tmp_path, python, OPENVINO, fed), wanted)
    assert cosine > 0.999
    assert same == 1.0


@pytest.mark.slow
def test_qnn_s_binary_gives_in_its_emulator_what_the_quantized_model_gives(tmp_path, real):
    python = real("qnn-htp-v73")
    file, fed, wanted = compiled(tmp_path, "qnn-htp-v73")
    (tmp_path / "model.onnx").write_bytes(file.read_bytes())
    cosine, same = agreement(ran(tmp_path, python, QNN, fed), wanted)
    assert cosine > 0.999
    assert same == 1.0


@pytest.mark.slow
@pytest.mark.parametrize("target", ["rk3588", "rv1106"])
def test_rknn_takes_the_quantized_model(tmp_path, real, target):
    real(target)
    assert compiled(tmp_path, target)[0].read_bytes().startswith(b"RKNN")


@pytest.mark.slow
def test_torq_takes_the_tflite_of_the_quantized_model(tmp_path, real):
    pytest.importorskip("tosa_converter_for_tflite", reason="npumake[compilers] is not installed")
    real("sl2610")
    assert compiled(tmp_path, "sl2610")[0].stat().st_size > 0
