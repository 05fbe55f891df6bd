"""A project with custom operators, built as a user builds it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest

from custom.files import MODEL, VENDOR
from forks import run_npumake
from npumake.bundle.archive import Bundle
from npumake.graph import parse_text
from npumake.runtime import Session
from workspaces import REPO, Workspace, lay_out, made

YAML = """\
model: {path: model.onnx}
data: {image: {files: samples/*.npy}}
targets: [rdk-x5]
calibration: {method: max}
custom_operators:
  - ops/*.py
"""
NODE = "projects/shrink"

pytestmark = pytest.mark.slow


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    laid = lay_out(tmp_path / "w")
    folder = laid.root / NODE
    (folder / "samples").mkdir(parents=True)
    (folder / "ops").mkdir()
    (folder / "project.yaml").write_text(YAML)
    (folder / "ops" / "shrink.py").write_text(VENDOR)
    parse_text(MODEL).save(folder / "model.onnx")
    rng = np.random.default_rng(1)
    for number in range(8):
        image = rng.normal(size=(1, 1, 8, 8)).astype(np.float32)
        np.save(folder / "samples" / f"{number}.npy", image)
    return laid


def build(workspace: Workspace) -> tuple[int, set[str], str]:
    run = workspace.npumake("build", "shrink", check=False)
    assert "Traceback" not in run.stdout + run.stderr
    return run.returncode, made(run, "made"), run.stdout + run.stderr


def test_it_is_a_cpu_node_in_float_and_in_the_bundle(workspace):
    code, _, said = build(workspace)
    assert code == 0, said
    out = workspace.root / NODE / "out"
    rows = {
        row["node"]: row for row in json.loads((out / "comparison.rdk-x5.json").read_text())["rows"]
    }
    assert (rows["s"]["on"], rows["s"]["type"], rows["s"]["dtype"]) == (
        "CPU",
        "Shrink2",
        "float/float",
    )
    assert rows["r" if "r" in rows else "c"]["on"] == "BPU"
    assert min(row["cosine"] for row in rows.values()) > 0.999
    assert Bundle.load(out / "shrink.rdk-x5.hybrid").code == {"shrink.py": VENDOR.encode()}
    feeds = {"image": np.load(workspace.root / NODE / "samples" / "0.npy")}
    (exact,) = Session(out / "shrink.rdk-x5.hybrid", allow_code=True).run(None, feeds)
    operators = [workspace.root / NODE / "ops" / "shrink.py"]
    for stage in ("original_float", "optimized_float", "calibrated.rdk-x5", "quantized.rdk-x5"):
        (y,) = Session(out / f"{stage}.onnx", operators=operators).run(None, feeds)
        assert np.abs(y - exact).max() <= 0.02 * np.abs(exact).max(), stage


def test_its_bytes_are_in_the_key_of_the_stages_that_run_or_hold_it(workspace):
    build(workspace)
    file = workspace.root / NODE / "ops" / "shrink.py"
    file.write_text(VENDOR + "# another byte\n")
    shared, own = (
        ("original_float", "statistics"),
        ("recipe", "calibrated", "compiled", "compiled_check", "comparison"),
    )
    runs = {*shared, *(f"rdk-x5/{stage}" for stage in own)}
    assert build(workspace)[1] == runs
    assert build(workspace)[1] == set()
    file.write_text(VENDOR.replace("n, c, h // 2", "n, c, h // 3"))  # of another shape
    code, _, said = build(workspace)
    assert (code, said.count("error:")) == (3, 1)


def test_undeclared_operators_are_one_error(workspace):
    (workspace.root / NODE / "project.yaml").write_text(YAML.partition("custom")[0])
    code, _, said = build(workspace)
    assert code == 3
    assert said.count("error:") == 1
    assert "without an implementation: vendor.ops.Shrink2" in said


def test_an_exception_in_compute_is_one_error_at_the_users_line(workspace):
    file = workspace.root / NODE / "ops" / "shrink.py"
    file.write_text(VENDOR.replace("n, c, h, w = X.shape\n", "n, c, h, w = X.shape[1:]\n"))
    code, _, said = build(workspace)
    assert code == 4
    assert said.count("error:") == 1
    assert "`s` (Shrink2): ValueError: not enough values to unpack" in said
    assert "--> shrink.py:12:1" in said


def linked(folder: Path) -> None:
    (folder / "ops" / "shrink.py").rename(folder.parent / "shrink.py")
    (folder / "ops" / "shrink.py").symlink_to("../../shrink.py")


def above(folder: Path) -> None:
    (folder / "ops").rename(folder.parent / "ops")
    (folder / "project.yaml").write_text(YAML.replace("ops/", "../ops/"))


def absolute(folder: Path) -> None:
    above(folder)
    (folder / "project.yaml").write_text(YAML.replace("ops/", f"{folder.parent}/ops/"))


@pytest.mark.parametrize("escape", [linked, above, absolute])
def test_python_outside_the_project_is_refused(workspace, escape):
    escape(workspace.root / NODE)
    code, _, said = build(workspace)
    assert code == 2
    assert "names Python outside the project" in said
    assert f"{NODE}/project.yaml:6:5" in said


def test_a_pattern_that_matches_nothing_is_refused(workspace):
    (workspace.root / NODE / "ops" / "shrink.py").unlink()
    code, _, said = build(workspace)
    assert (code, "no file matches `ops/*.py`" in said) == (2, True)


def with_helper(workspace: Workspace, *declared: str) -> Path:
    """ops/shrink.py imports ops/gain.py."""
    folder = workspace.root / NODE
    body = VENDOR.replace("self._bias\n\n", "self._bias * GAIN\n\n")
    (folder / "ops" / "shrink.py").write_text(f"from gain import GAIN\n{body}")
    (folder / "ops" / "gain.py").write_text("GAIN = 1.0\n")
    old = "  - ops/*.py"
    (folder / "project.yaml").write_text(YAML.replace(old, "\n".join(declared)))
    return folder / "ops" / "gain.py"


@pytest.mark.parametrize(
    "declared",
    [
        ("  - {files: ops/shrink.py, with: [ops/gain.py]}",),
        ("  - files: ops/shrink.py\n    with: [ops/g*.py]",),
        ("  - ops/shrink.py", "  - ops/gain.py"),
    ],
)
def test_a_file_that_it_imports_is_in_the_key_and_in_the_bundle(workspace, declared):
    helper = with_helper(workspace, *declared)
    code, _, said = build(workspace)
    assert code == 0, said
    assert build(workspace)[1] == set()
    bundle = workspace.root / NODE / "out/shrink.rdk-x5.hybrid"
    assert Bundle.load(bundle).code.keys() - {"shrink.py"} <= {
        "gain.py",
        "ops/gain.py",
        "ops/g*.py",
    }
    feeds = {"image": np.load(workspace.root / NODE / "samples" / "0.npy")}
    before = Session(bundle, allow_code=True).run(None, feeds)
    helper.write_text("GAIN = 3.0\n")
    assert "rdk-x5/compiled" in build(workspace)[1]
    after = Session(bundle, allow_code=True).run(None, feeds)
    assert not np.array_equal(before[0], after[0])


def npumake(*words: str) -> subprocess.CompletedProcess[str]:
    """Where we are, with the environment that a test has set."""
    return run_npumake(*words)


def test_an_undeclared_import_is_the_same_error_from_everywhere(workspace, monkeypatch):
    with_helper(workspace, "  - ops/shrink.py")
    folder = workspace.root / NODE
    for path in ("", str(folder / "ops"), str(folder)):
        monkeypatch.setenv("PYTHONPATH", f"{path}:{REPO / 'pipeline'}")
        for here in (workspace.root, folder, folder / "ops"):
            monkeypatch.chdir(here)
            run = npumake("build", str(folder))
            said = run.stdout + run.stderr
            assert (run.returncode, said.count("error:")) == (2, 1), said
            assert "`shrink.py` imports `gain`, which is not declared" in said
            assert "shrink.py:1:1" in said
            assert "custom_operators: [{files: ops/shrink.py, with: [ops/gain.py]}]" in said
