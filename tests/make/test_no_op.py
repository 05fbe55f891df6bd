"""A build with nothing to do is quick: it loads neither NumPy nor ONNX, and hashes nothing."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from workspaces import Workspace

HEAVY = {"numpy", "onnx", "onnx_ir", "onnxruntime", "jsonschema", "rich", "yaml"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "command", [["-m", "doit"], ["-m", "pipeline.cli.main", "list"]], ids=["doit", "list"]
)
def test_a_no_op_imports_no_heavy_library(built: Workspace, command: list[str]) -> None:
    built.doit()  # hashes once more what was too young to be trusted
    environment = {k: v for k, v in os.environ.items() if k not in ("CI", "NPUMAKE_PARANOID")}
    run = subprocess.run(
        [sys.executable, "-X", "importtime", *command],
        cwd=built.root,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = {line.rpartition("|")[2].strip().split(".")[0] for line in run.stderr.splitlines()}
    assert "doit" in loaded or "list" in command
    assert loaded & HEAVY == set()
    assert "14 current" in run.stdout or run.stdout.count("current") == 14
