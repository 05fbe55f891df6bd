"""A compiled file is run before it is believed: what computes something else fails the build."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from time import sleep

import numpy as np
import pytest

from npumake.bundle.archive import Bundle
from npumake.compilers.backends import built as file_of
from npumake.compilers.flatfile import written
from npumake.compilers.tflite import drawing
from npumake.data.samples import Samples
from npumake.debug.compiled_check import CompiledCheck
from npumake.debug.compiled_file import iree_taps
from npumake.errors import StageError
from npumake.graph import parse
from npumake.project.sections import ComparisonSettings
from npumake.runtime import isolated
from npumake.runtime.isolated import Isolated, Job, RunError
from npumake.targets.reader import read_target, target_names
from npumake.targets.target import SUFFIXES
from stages.compiled_files import LAYERS, Built, built_cube, check, program_of

NEEDS = {
    "ethos-u55-128": ("ethosu", "ai_edge_litert"),
    "iree-cpu": ("iree.compiler", "iree.runtime", "tosa_converter_for_tflite"),
    "onnx": (),
    "openvino-cpu": ("openvino",),
    "rdk-x5": (),
    "tflite": ("ai_edge_litert",),
}
SEVERAL = [pytest.param(chip, marks=pytest.mark.slow) for chip in NEEDS]


@pytest.fixture
def made(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Built:
    """The cube compiled for the chip that the test names."""
    for module in NEEDS[request.param]:
        pytest.importorskip(module, reason=f"{module} is not installed")
    if request.param == "openvino-cpu":
        monkeypatch.setenv("NPUMAKE_OPENVINO_PYTHON", sys.executable)
    return built_cube(request.param)


def refused(made: Built, data: bytes) -> str:
    with pytest.raises(StageError) as caught:
        check(made, data)
    assert caught.value.exit_code == 4
    return caught.value.what


# -- what is right ---------------------------------------------------------------------------


@pytest.mark.parametrize("made", SEVERAL, indirect=True)
def test_a_file_is_held_to_the_integers_output_by_output(made: Built) -> None:
    found = check(made)
    assert (found.samples, found.skipped) == (3, "")
    assert [output.name for output in found.outputs] == ["y", "z"]
    assert [output.shape for output in found.outputs] == [(1, 6, 6, 6), (1, 6)]
    assert all(output.cosine > 0.99 for output in found.outputs)


@pytest.mark.parametrize("made", ["rdk-x5"], indirect=True)
def test_a_batch_is_held_image_by_image(made: Built) -> None:
    bundle = replace(Bundle.from_bytes(made.file.data), batch=2)
    graph = made.quantized.copy()
    graph.metadata["npumake.batch"] = "2"
    found = check(made._replace(quantized=graph), bundle.to_bytes())
    assert (found.samples, len(found.outputs)) == (3, 2)


@pytest.mark.slow
@pytest.mark.parametrize(("asked", "count"), [(1, 1), (5, 5), (100, 12), ("all", 12)])
@pytest.mark.parametrize("made", ["rdk-x5"], indirect=True)
def test_so_many_samples_as_the_project_asks(made: Built, asked: int | str, count: int) -> None:
    assert check(made, asked=ComparisonSettings(asked)).samples == count  # type: ignore[arg-type]


@pytest.mark.parametrize("made", ["rdk-x5"], indirect=True)
def test_without_samples_it_is_noise_and_said(made: Built) -> None:
    found = check(made, fed=Samples((), lambda index: {}))
    assert found.samples == 3
    assert any("noise" in line for line in found.lines)


# -- what is not run -------------------------------------------------------------------------


@pytest.mark.parametrize("made", ["rdk-x5"], indirect=True)
def test_off_is_said(made: Built) -> None:
    found = check(made, b"no file", asked=ComparisonSettings("off"))
    assert found.lines == ["the compiled file was not run: `comparison.compiled` is off"]


ELSEWHERE = [
    name
    for name in target_names()
    if read_target(name).backend in ("qnn", "rknn", "torq") or "cortex" in name
]


@pytest.mark.parametrize("chip", ELSEWHERE)
def test_what_runs_on_its_chip_alone_is_said_in_a_line(chip: str) -> None:
    made = built_cube("rdk-x5")._replace(target=read_target(chip))
    (line,) = check(made).lines
    assert line.startswith("the compiled file was not run: ")


def test_of_every_kind_of_file_something_is_known() -> None:
    assert {read_target(name).backend for name in [*NEEDS, *ELSEWHERE]} == set(SUFFIXES)


def test_a_runtime_that_is_not_installed_is_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    from npumake.debug.compiled_file import runs as file_runs

    monkeypatch.setitem(
        file_runs.RUNTIMES, "tflite", file_runs.RUNTIMES["tflite"]._replace(distribution="no-such")
    )
    made = built_cube("rdk-x5")._replace(target=read_target("tflite"))
    (line,) = check(made).lines
    assert "pip install no-such" in line


# -- what is sabotaged -----------------------------------------------------------------------


def weight_of(made: Built, layer: str) -> np.ndarray:
    """The codes of the layer's weights, as they lie in a .tflite."""
    step = next(step for step in program_of(made).instructions if step.name == layer)
    weight = step.constants["weight"]
    if weight.ndim == 4:
        return np.ascontiguousarray(weight.transpose(0, 2, 3, 1))
    return np.ascontiguousarray(weight.T if step.op == "matmul" else weight)


def changed(data: bytes, weight: bytes, at: int) -> bytes:
    """Another byte in the only place of the file that holds the weight."""
    assert data.count(weight) == 1
    found = bytearray(data)
    found[data.index(weight) + at] ^= 0x40
    return bytes(found)


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("made", ["tflite"], indirect=True)
def test_a_changed_weight_byte_of_a_tflite_names_its_node(made: Built, layer: str) -> None:
    weight = weight_of(made, layer)
    if made.file.data.count(weight.tobytes()) != 1:
        weight = np.ascontiguousarray(weight.reshape(weight.shape[0], -1).T)
    said = refused(made, changed(made.file.data, weight.tobytes(), weight.size // 2))
    assert f"the first wrong node is `{layer}` (" in said
    assert re.search(r"1 of \d+ bytes of its weight|off by \d+ codes?", said)


@pytest.mark.slow
@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("made", ["rdk-x5"], indirect=True)
def test_a_changed_weight_of_a_bundle_names_its_node(made: Built, layer: str) -> None:
    bundle = Bundle.from_bytes(made.file.data)
    steps = []
    for step in bundle.program.instructions:
        if step.name == layer:
            weight = step.constants["weight"].copy()
            weight.reshape(-1)[::3] ^= 0x40
            step = replace(step, constants={**step.constants, "weight": weight})
        steps.append(step)
    other = replace(bundle, program=replace(bundle.program, instructions=tuple(steps)))
    assert f"is `{layer}` (" in refused(made, other.to_bytes())


@pytest.mark.slow
@pytest.mark.parametrize("made", ["onnx"], indirect=True)
@pytest.mark.parametrize("layer", LAYERS)
def test_a_changed_weight_of_an_onnx_file_names_its_node(made: Built, layer: str) -> None:
    weight = weight_of(made, layer)
    if weight.ndim == 4:
        weight = np.ascontiguousarray(weight.transpose(0, 3, 1, 2))
    data = next(
        changed(made.file.data, w.tobytes(), 5)
        for w in (weight, np.ascontiguousarray(weight.T))
        if made.file.data.count(w.tobytes()) == 1
    )
    assert f"is `{layer}` (" in refused(made, data)


@pytest.mark.parametrize("made", ["tflite"], indirect=True)
def test_a_transposed_output_names_the_node_that_makes_it(made: Built) -> None:
    draft, inputs, outputs = drawing(program_of(made), made.quantized)
    index, _ = outputs[0]
    perm = draft.constant("perm", np.array([0, 3, 1, 2], np.int32))
    draft.tensors.append(replace(draft.tensors[index], name="y"))
    draft.tensors[index] = replace(draft.tensors[index], name="y_inside")
    turned = len(draft.tensors) - 1
    draft.draw("TRANSPOSE", (index, perm), (turned,))
    data = written(draft.tensors, draft.operators, [i for i, _ in inputs], [turned, outputs[1][0]])
    said = refused(made, data)
    assert "off by " in said
    assert "the first wrong node is `sum` (Add)" in said


@pytest.mark.slow
@pytest.mark.parametrize("made", ["onnx"], indirect=True)
def test_an_output_of_another_shape_is_no_matter_of_a_bound(made: Built) -> None:
    graph = parse(made.file.data, "other")
    (y, z) = graph.outputs
    graph.model.graph.outputs[:] = [z, y]
    y.name, z.name = "other", "y"
    y.name = "z"
    said = refused(made, graph.to_bytes())
    assert "the shape [1, 6], not [1, 6, 6, 6]" in said


@pytest.mark.parametrize("made", ["iree-cpu"], indirect=True)
@pytest.mark.slow
def test_what_a_compiler_gets_wrong_is_found_by_compiling_anew(
    made: Built, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A compiler that loses the second layer's weights, in every file that it makes."""
    program = program_of(made)
    steps = [
        replace(s, constants={**s.constants, "weight": 0 * s.constants["weight"]})
        if s.name == "second"
        else s
        for s in program.instructions
    ]
    lossy = replace(program, instructions=tuple(steps))
    monkeypatch.setattr(iree_taps, "network_of", lambda part: drawing(lossy, part.graph))
    said = refused(made, file_of(lossy, made.quantized, made.target, {}))
    assert "the first wrong node is `second` (Conv): its result is off by" in said


# -- what ends the process -------------------------------------------------------------------


@pytest.mark.parametrize("made", ["tflite"], indirect=True)
def test_a_file_that_aborts_is_an_error_with_the_signal_and_what_was_fed(made: Built) -> None:
    """LiteRT asserts that 2 * s_in / (2^20 * s_out) < 1 of an Add."""
    draft, inputs, outputs = drawing(program_of(made), made.quantized)
    index = next(o.outputs[0] for o in draft.operators if o.type == "ADD")
    draft.tensors[index] = replace(draft.tensors[index], scale=(1e-12,))
    data = written(draft.tensors, draft.operators, [i for i, _ in inputs], [i for i, _ in outputs])
    said = refused(made, data)
    assert "LiteRT: ends with SIGABRT" in said
    assert "while it is opened" in said or "fed `sample 0`" in said


def test_what_is_no_file_is_an_error() -> None:
    made = built_cube("rdk-x5")
    assert "npumake's runtime: " in refused(made, b"no bundle")


BUSY = "while True: pass"
GREEDY = """
import json, resource, sys
memory = json.load(open(sys.argv[1] + "/request.json"))["memory"]
resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
bytearray(2 * memory)
"""


def outputs_of(script: str) -> str:
    job = Job(b"", ".none", [{"x": np.zeros(1)}], command=(sys.executable, "-c", script))
    with Isolated(job) as process, pytest.raises(RunError) as caught:
        list(process.runs())
    return caught.value.what


@pytest.mark.slow
def test_a_file_that_runs_for_ever_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolated, "OPEN_SECONDS", 1)
    monkeypatch.setattr(isolated, "RUN_SECONDS", 0)
    assert outputs_of(BUSY) == "runs longer than 1 s"


def test_a_file_that_asks_for_more_memory_than_it_may_have_is_told_so() -> None:
    assert outputs_of(GREEDY).endswith("it needs more memory than it may have")


@pytest.mark.parametrize(
    ("status", "said"), [("os.abort()", "SIGABRT"), ("os.kill(os.getpid(), 11)", "SIGSEGV")]
)
def test_a_signal_has_its_name(status: str, said: str) -> None:
    assert outputs_of(f"import os; {status}") == f"ends with {said}"


PARENT = """
import os, subprocess, sys
child = '''
import os, resource, time
from npumake.runtime.isolated_child import _limit
_limit({"memory": resource.RLIM_INFINITY, "seconds": 600, "parent": os.getppid()})
print("ready", flush=True)
time.sleep(600)
'''
process = subprocess.Popen([sys.executable, "-c", child], stdout=subprocess.PIPE)
assert process.stdout.readline() == b"ready\\n"
print(process.pid, flush=True)
os.kill(os.getpid(), 9)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere its alarm ends it")
def test_the_process_ends_with_its_parent() -> None:
    done = subprocess.run([sys.executable, "-c", PARENT], capture_output=True, text=True)
    state = Path(f"/proc/{int(done.stdout)}/stat")
    for _ in range(100):
        if not state.exists() or state.read_text().split()[2] == "Z":
            return
        sleep(0.1)
    pytest.fail("it runs on")


# -- who runs it -----------------------------------------------------------------------------


@pytest.mark.slow
def test_files_of_the_user_are_not_imported(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("numpy.py", "json.py", "onnxruntime.py"):
        (tmp_path / name).write_text("raise SystemExit('not mine')")
    (tmp_path / "npumake").mkdir()
    (tmp_path / "npumake" / "__init__.py").write_text("raise SystemExit('not mine')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", f".{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    assert check(built_cube("rdk-x5")).samples == 3


@pytest.mark.slow
def test_the_check_is_the_same_bytes_each_time(tmp_path) -> None:
    for name in "ab":
        check(built_cube("rdk-x5")).save(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert CompiledCheck.load(tmp_path / "a") == check(built_cube("rdk-x5"))
