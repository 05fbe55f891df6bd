"""A build with nothing to do is quick: it loads neither NumPy nor ONNX, and hashes nothing.

One that only has another method runs nothing, and loads nothing of what it does not use.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from workspaces import Workspace

HEAVY = {"numpy", "onnx", "onnx_ir", "onnxruntime", "jsonschema", "rich", "yaml"}


# Imported late: what of them is executed shows by what they import.
UNUSED = {
    "cryptography.x509",
    "jsonschema.validators",
    "onnxruntime.capi",
    "PIL.Image",
    "npumake.compilers.tflite",
    "npumake.frontends",
    "npumake.dialects.drobotics.keys",
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "command", [["-m", "doit"], ["-m", "npumake.cli.main", "list"]], ids=["doit", "list"]
)
def test_a_no_op_imports_no_heavy_library(built: Workspace, command: list[str]) -> None:
    built.doit()  # hashes once more what was too young to be trusted
    run = _timed(built, command)
    loaded = {name.split(".")[0] for name in _imported(run)}
    assert "doit" in loaded or "list" in command
    assert loaded & HEAVY == set()
    assert "16 current" in run.stdout or run.stdout.count("current") == 16


@pytest.mark.slow
def test_a_sealed_no_op_plans_nothing(built: Workspace) -> None:
    for _ in range(3):  # the first may write bytecode, which changes a folder of the sources
        run = _timed(built, ["-m", "doit"])
    assert "16 current" in run.stdout
    loaded = _imported(run)
    assert "npumake.make.seals" in loaded
    assert loaded & {"npumake.make.build", "npumake.make.code", "npumake.project.files"} == set()


@pytest.mark.slow
def test_another_method_loads_only_what_it_uses(built: Workspace) -> None:
    yaml = built.project / "project.yaml"
    yaml.write_text(yaml.read_text().replace("method: max", "method: kl"))
    node = "digits:rdk-x5/compiled"
    run = _timed(built, ["-m", "npumake.cli.main", "build", node])
    assert run.stdout.count("made  ") == 4
    loaded = _imported(run)
    assert "npumake.quant.search.recipe" in loaded
    assert loaded & UNUSED == set()


def _timed(built: Workspace, command: list[str]) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if k not in ("CI", "NPUMAKE_PARANOID")}
    return subprocess.run(
        [sys.executable, "-X", "importtime", *command],
        cwd=built.root,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )


def _imported(run: subprocess.CompletedProcess[str]) -> set[str]:
    return {line.rpartition("|")[2].strip() for line in run.stderr.splitlines()}
