"""A build that is killed at any moment leaves no process, no wrong byte, nothing to wait for.

Each seed is a chain of builds that are killed, in one workspace, and one that is not. A handful in
CI; all of them with NPUMAKE_EVERY=1.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from processes import (
    LIMIT,
    TELEMETRY,
    children,
    environment,
    eventually,
    marked,
    waits_for_signals,
)
from workspaces import Workspace, few, remember_code

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
BUILDS = {
    "npumake": ("-m", "npumake.cli.main", "build"),
    "npumake -n 2": ("-m", "npumake.cli.main", "build", "-n", "2"),
    "doit": ("-m", "doit"),
    "doit -n 2": ("-m", "doit", "-n", "2"),
}
FAILED = {"npumake -n 2": 4, "doit -n 2": 1}  # the exit code where a worker was killed
CHAIN = 4  # builds that are killed, one after the other
CACHE = re.compile(
    r"(files|sources|stages)\.json|blobs/../.{62}|records/../.{62}\.json"
    r"|(closures|seals)/.{64}\.json"
)


class Kill(NamedTuple):
    build: str
    victim: str
    signal: signal.Signals
    lines: int  # that the build has said by then
    delay: float  # seconds behind the last of them


def chain(seed: int) -> list[Kill]:
    rng = random.Random(seed)
    kills = []
    for _ in range(CHAIN):
        victim = rng.choice(["main", "worker", "group"])
        build = rng.choice([*FAILED] if victim == "worker" else [*BUILDS])
        lines = rng.choice([0, 0, rng.randrange(15)])
        delay = rng.uniform(0, 0.3 if lines else 2)
        kills.append(Kill(build, victim, rng.choice(SIGNALS), lines, delay))
    return kills


@pytest.mark.slow
@pytest.mark.parametrize("seed", few(range(50), lambda seed: seed == 0))
def test_a_killed_build_leaves_nothing_and_the_next_is_as_good_as_any(
    seed: int, fresh: Workspace, built_once: Workspace, tmp_path: Path
) -> None:
    expected, folder = built_once.digests(), tmp_path / "tmp"
    folder.mkdir()
    for number, kill in enumerate(chain(seed)):
        shutil.rmtree(fresh.project / "out", ignore_errors=True)
        shutil.rmtree(fresh.root / "cache")
        remember_code(fresh.root)
        mark = f"{os.getpid()}-{seed}-{number}"
        killed(fresh, kill, mark, folder)
        assert eventually(lambda mark=mark: not marked(mark)), f"{kill} leaves processes"
        for name, found in fresh.digests().items():
            assert name.startswith(".") or found == expected[name], f"{kill}: half of {name}"
    rebuilt = run(fresh, "npumake", folder)
    assert rebuilt.returncode == 0, rebuilt.stdout
    assert fresh.digests() == expected
    assert leftovers(fresh, folder) == []


def killed(workspace: Workspace, kill: Kill, mark: str, folder: Path) -> None:
    with subprocess.Popen(
        [sys.executable, *BUILDS[kill.build]],
        cwd=workspace.root,
        env=environment(mark, TMPDIR=str(folder)),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as build:
        assert build.stdout is not None
        said = [build.stdout.readline() for _ in range(kill.lines)]
        time.sleep(kill.delay)
        ours = waits_for_signals(build.pid)
        strike(build, kill)
        try:
            said.append(build.communicate(timeout=LIMIT)[0])
        except subprocess.TimeoutExpired:
            os.killpg(build.pid, signal.SIGKILL)
            pytest.fail(f"{kill} is waited for in vain")
    check(kill, build.returncode, "".join(said), ours)


def strike(build: subprocess.Popen[str], kill: Kill) -> None:
    if kill.victim == "worker":
        eventually(lambda: children(build.pid) or build.poll() is not None)
        victims = children(build.pid)
        if victims:
            os.kill(random.Random(kill.delay).choice(victims), kill.signal)
    elif build.poll() is None:
        (os.killpg if kill.victim == "group" else os.kill)(build.pid, kill.signal)


def check(kill: Kill, status: int, output: str, ours: bool) -> None:
    """The exit code is of the signal, or the build was over by then."""
    told = f"{kill} ends with {status}: {output[-2000:]}"
    if kill.victim == "worker":
        assert status in (0, FAILED[kill.build]), told
        assert status == 0 or f"ended with {kill.signal.name}" in output, told
        assert "Traceback" not in output, told
    elif kill.signal is signal.SIGKILL:
        assert status in (0, -kill.signal), told
    elif ours:
        assert status in (0, 128 + kill.signal), told
        assert "Traceback" not in output, told
        assert status == 0 or "interrupted: finished artifacts are kept" in output, told


def run(workspace: Workspace, build: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *BUILDS[build]],
        cwd=workspace.root,
        env=environment("unkilled", TMPDIR=str(folder)),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def leftovers(workspace: Workspace, folder: Path) -> list[str]:
    """What a clean build would not have: in cache/, in out/, and among the temporary files."""
    cache = workspace.root / "cache"
    inside = [path.relative_to(cache).as_posix() for path in cache.rglob("*") if path.is_file()]
    found = [name for name in inside if not CACHE.fullmatch(name)]
    found += [path.name for path in folder.iterdir() if path.name != TELEMETRY]
    out = workspace.project / "out"
    return found + [path.name for path in out.rglob("*") if "tmp" in path.name]
