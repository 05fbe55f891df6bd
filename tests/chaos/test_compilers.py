"""A compiler ends with the build that wanted it, and so does all that the compiler has started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from npumake.cli.signals import LINE
from processes import LIMIT, TELEMETRY, children, environment, eventually, marked
from workspaces import Workspace, few

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")

# A script, as vendors' tools are: what it starts would outlive it. Asked for versions it says one.
COMPILER = """#!/bin/sh
test "$2" = -c && echo 1.0 && exit
mktemp
{act}
"""
NEVER_ENDS = "sh -c 'sleep 600; :' & touch '{}'; wait"
NODE = "digits:openvino-cpu/compiled"
BUILD = [sys.executable, "-m", "npumake.cli.main", "build", NODE]
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
CASES = [(victim, number) for victim in ("main", "worker", "group") for number in SIGNALS]
CI = [("main", signal.SIGKILL), ("worker", signal.SIGTERM), ("group", signal.SIGINT)]


@pytest.fixture
def variables(fresh: Workspace, tmp_path: Path) -> dict[str, str]:
    """The environment in which OpenVINO's compiler, for which the project asks, is a script."""
    (tmp_path / "tmp").mkdir()
    file = fresh.project / "project.yaml"
    file.write_text(file.read_text().partition("\ntargets:")[0] + "\ntargets: [openvino-cpu]\n")
    compiler = {"NPUMAKE_OPENVINO_PYTHON": str(tmp_path / "compiler")}
    return environment(str(tmp_path), TMPDIR=str(tmp_path / "tmp"), **compiler)


def write_compiler(folder: Path, act: str) -> None:
    file = folder / "compiler"
    file.unlink(missing_ok=True)
    file.write_text(COMPILER.format(act=act))
    file.chmod(0o755)


@pytest.mark.slow
@pytest.mark.parametrize(("victim", "number"), few(CASES, CI.__contains__))
def test_it_ends_with_all_that_it_started(
    victim: str,
    number: signal.Signals,
    fresh: Workspace,
    variables: dict[str, str],
    tmp_path: Path,
) -> None:
    write_compiler(tmp_path, NEVER_ENDS.format(tmp_path / "started"))
    with subprocess.Popen(
        [*BUILD, "-n", "2"],
        cwd=fresh.root,
        env=variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as build:
        assert eventually((tmp_path / "started").exists)
        strike(build.pid, victim, number)
        output, _ = build.communicate(timeout=LIMIT)
    assert eventually(lambda: not marked(str(tmp_path)))
    if victim == "worker":
        assert build.returncode == 4
        assert f"the process that built `{NODE}` ended with {number.name}" in output
    elif number is not signal.SIGKILL:
        assert build.returncode == 128 + number
        assert output.endswith(f"{LINE}\n")
    write_compiler(tmp_path, "exit 9")
    failed = subprocess.run(BUILD, cwd=fresh.root, env=variables, capture_output=True, check=False)
    assert (failed.returncode, b"exit status 9" in failed.stdout) == (4, True)
    assert {path.name for path in (tmp_path / "tmp").iterdir()} <= {TELEMETRY}


def strike(build: int, victim: str, number: signal.Signals) -> None:
    if victim == "group":
        os.killpg(build, number)
        return
    if victim == "main":
        os.kill(build, number)
        return
    (worker,) = (child for child in children(build) if children(child))
    os.kill(worker, number)
