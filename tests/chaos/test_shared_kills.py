"""Two builders that share a near and a far store are killed at any moment: both stores stay right.

Each seed is a chain of rounds. In each round both build the same project, from stores of which some
are emptied, and both are killed. 25 seeds are 200 kills; one of them in CI, all by NPUMAKE_EVERY=1.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from npumake.cache.remote.envelope import unpacked
from npumake.digest import of_bytes
from processes import environment, eventually, marked, waits_for_signals
from workspaces import Workspace, few, lay_out, made, remember_code

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")

SEEDS, ROUNDS = 25, 4  # of two kills
SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
EMPTIED = ("nothing", "near", "far", "both")
NODES = 16


class Kill(NamedTuple):
    options: tuple[str, ...]
    signal: signal.Signals
    lines: int  # that the build has said by then
    delay: float  # seconds behind the last of them


class Round(NamedTuple):
    emptied: str
    kills: tuple[Kill, Kill]


def rounds(seed: int) -> list[Round]:
    rng = random.Random(seed)

    def kill() -> Kill:
        options = rng.choice([(), ("-n", "2")])
        lines = rng.choice([0, 0, rng.randrange(12)])
        delay = rng.uniform(0, 0.4 if lines else 2.5)
        return Kill(options, rng.choice(SIGNALS), lines, delay)

    return [Round(rng.choice(EMPTIED), (kill(), kill())) for _ in range(ROUNDS)]


class Stores(NamedTuple):
    """A near and a far store, and the variables of those who share them."""

    near: Path
    far: Path
    variables: Mapping[str, str]


@pytest.fixture
def stores(tmp_path: Path) -> Stores:
    near, far, folder = tmp_path / "near", tmp_path / "far", tmp_path / "tmp"
    for each in (far, folder):
        each.mkdir()
    variables = {
        "NPUMAKE_CACHE": str(near),
        "NPUMAKE_CACHE_REMOTE": f"file://{far}",
        "XDG_CONFIG_HOME": str(tmp_path / "user"),
        "TMPDIR": str(folder),
    }
    Workspace(tmp_path).npumake("cache", "keygen", environment=variables)
    return Stores(near, far, variables)


def start(here: Workspace, stores: Stores, mark: str, *options: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "npumake.cli.main", "build", *options],
        cwd=here.root,
        env=environment(mark, **stores.variables),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def empty(stores: Stores, emptied: str) -> None:
    if emptied in ("near", "both"):
        shutil.rmtree(stores.near, ignore_errors=True)
    if emptied in ("far", "both"):
        shutil.rmtree(stores.far)
        stores.far.mkdir()
    remember_code(stores.near.parent)
    shutil.copytree(stores.near.parent / "cache", stores.near, dirs_exist_ok=True)


def strike(build: subprocess.Popen[str], kill: Kill) -> bool:
    """Whether the build had got as far as to handle signals."""
    assert build.stdout is not None
    for _ in range(kill.lines):
        build.stdout.readline()
    time.sleep(kill.delay)
    is_ready = waits_for_signals(build.pid)
    with suppress(ProcessLookupError):
        os.killpg(build.pid, kill.signal)
    return is_ready


@pytest.mark.slow
@pytest.mark.parametrize("seed", few(range(SEEDS), lambda seed: seed == 3))
def test_killed_builders_that_share_stores_converge(
    seed: int, built_once: Workspace, stores: Stores, tmp_path: Path
) -> None:
    expected = built_once.digests()
    desks = [lay_out(tmp_path / "a"), lay_out(tmp_path / "b")]
    for number, each in enumerate(rounds(seed)):
        empty(stores, each.emptied)
        mark = f"{os.getpid()}-{seed}-{number}"
        play(each, desks, stores, mark)
        for desk in desks:
            for name, found in desk.digests().items():
                assert name.startswith(".") or found == expected[name], f"half of {name}"
        check_far(stores.far)
    finish(desks, stores)
    for desk in desks:
        assert desk.digests() == expected
    assert desks[0].npumake("cache", "verify", environment=stores.variables).returncode == 0
    assert [*stores.near.glob("locks/*")] == []  # no folder where the far store had everything
    check_clean_machine(stores, tmp_path, expected)


def play(each: Round, desks: list[Workspace], stores: Stores, mark: str) -> None:
    """Both builders start side by side, and are killed one after the other."""
    with ExitStack() as stack:
        builds = []
        for desk, kill in zip(desks, each.kills, strict=True):
            shutil.rmtree(desk.project / "out", ignore_errors=True)
            builds.append(stack.enter_context(start(desk, stores, mark, *kill.options)))
        ready = [strike(build, kill) for build, kill in zip(builds, each.kills, strict=True)]
        for build, kill, is_ready in zip(builds, each.kills, ready, strict=True):
            text = build.communicate()[0]
            ended = (0, -kill.signal, 128 + kill.signal)
            told = f"{kill} ends with {build.returncode}: {text[-2000:]}"
            assert build.returncode in ended or not is_ready, told
    assert eventually(lambda: not marked(mark)), f"{each} leaves processes"


def finish(desks: list[Workspace], stores: Stores) -> None:
    """Both build to the end, side by side."""
    with ExitStack() as stack:
        builds = [stack.enter_context(start(desk, stores, "unkilled")) for desk in desks]
        for build in builds:
            text = build.communicate()[0]
            assert build.returncode == 0, text


def check_far(far: Path) -> None:
    """Every blob has the bytes of its name, every record its blob."""
    for blob in far.glob("cas/*"):
        assert of_bytes(blob.read_bytes()) == blob.name
    for file in far.glob("ac/*"):
        envelope = unpacked(file.read_bytes())
        assert envelope is not None
        assert envelope.key == file.name
        assert (far / "cas" / envelope.record.digest).exists()


def check_clean_machine(stores: Stores, root: Path, expected: Mapping[str, str]) -> None:
    """It restores all from the far store, once all is uploaded; even what is faster to make."""
    Workspace(root / "a").npumake("cache", "push", "--all", environment=stores.variables)
    there = lay_out(root / "c")
    variables = {**stores.variables, "NPUMAKE_CACHE": str(root / "clean")}
    there.npumake("cache", "pull", environment=variables)
    run = there.npumake("build", "--remote", "off", environment=variables)
    assert len(made(run, "recalled")) == NODES, run.stdout
    assert there.digests() == expected
