"""Two builds of the same thing at once: each stage runs once, whoever is killed or sweeps."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from processes import eventually
from workspaces import Workspace, lay_out, made

NODES = 16
NO_LOCKS = """
import errno, fcntl, sys
def flock(*_):
    raise OSError(errno.ENOLCK, "No locks available")
fcntl.flock = flock
from npumake.cli.main import main
sys.exit(main(["build"]))
"""


def environment(cache: Path, **more: str) -> dict[str, str]:
    clean = {k: v for k, v in os.environ.items() if k not in ("CI", "NPUMAKE_PARANOID")}
    return {**clean, "NPUMAKE_CACHE": str(cache), **more}


@contextmanager
def building(workspace: Workspace, cache: Path, *command: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, *(command or ("-m", "npumake.cli.main", "build"))],
        cwd=workspace.root,
        env=environment(cache),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def output(process: subprocess.Popen[str]) -> str:
    text = process.communicate()[0]
    assert process.returncode == 0, text
    return text


def built(text: str, how: str) -> set[str]:
    return made(subprocess.CompletedProcess([], 0, text), how)


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Workspace, Workspace]:
    """The same project on two desks."""
    return lay_out(tmp_path / "a"), lay_out(tmp_path / "b")


@pytest.mark.slow
def test_each_stage_runs_once_and_the_other_build_joins(
    pair: tuple[Workspace, Workspace], built_once: Workspace, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        cache = tmp_path / "cache"
        builds = [stack.enter_context(building(here, cache)) for here in pair]
        texts = [output(build) for build in builds]
    runs = [built(text, "made") for text in texts]
    assert runs[0] & runs[1] == set()
    assert len(runs[0] | runs[1]) == NODES
    assert "waiting for another build to make digits:" in "".join(texts)
    for here in pair:
        assert here.digests() == built_once.digests()
    assert os.listdir(cache / "locks") == []


@pytest.mark.slow
def test_where_locks_do_not_work_both_build(
    pair: tuple[Workspace, Workspace], built_once: Workspace, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        cache = tmp_path / "cache"
        builds = [stack.enter_context(building(w, cache, "-c", NO_LOCKS)) for w in pair]
        assert "waiting" not in "".join(output(build) for build in builds)
    for here in pair:
        assert here.digests() == built_once.digests()


@pytest.mark.slow
def test_a_killed_build_is_not_waited_for(
    pair: tuple[Workspace, Workspace], built_once: Workspace, tmp_path: Path
) -> None:
    first, second = pair
    cache = tmp_path / "cache"
    with building(first, cache) as dead:
        assert eventually(lambda: (cache / "locks").is_dir() and os.listdir(cache / "locks"))
        dead.send_signal(signal.SIGSTOP)
        with building(second, cache) as alive:
            held = os.listdir(cache / "locks")
            if not held:  # it ended the stage in the moment of the signal
                dead.send_signal(signal.SIGCONT)
            else:
                assert alive.stdout is not None
                lines = iter(alive.stdout.readline, "")
                assert any("waiting for another build" in line for line in lines)
                dead.kill()
            output(alive)
    assert second.digests() == built_once.digests()
    assert os.listdir(cache / "locks") == []


@pytest.mark.slow
def test_a_failed_stage_fails_in_both_builds(
    pair: tuple[Workspace, Workspace], tmp_path: Path
) -> None:
    for here in pair:
        (here.project / "model.onnx").write_bytes(b"no model")
    with ExitStack() as stack:
        builds = [stack.enter_context(building(here, tmp_path / "cache")) for here in pair]
        for build in builds:
            text = build.communicate()[0]
            assert build.returncode == 3, text
            assert "failed    digits:original_float" in text


# -- sweeps meanwhile --------------------------------------------------------------------------


def npumake(
    here: Workspace, cache: Path, *arguments: str, check: bool = True
) -> subprocess.CompletedProcess[str]:
    return here.npumake(*arguments, environment={"NPUMAKE_CACHE": str(cache)}, check=check)


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("--max-size", "0")], ids=["all", "budget"])
def test_sweeps_while_two_builds_run_cost_no_build_and_no_record(
    pair: tuple[Workspace, Workspace],
    built_once: Workspace,
    tmp_path: Path,
    options: tuple[str, ...],
) -> None:
    """A third workspace, whose projects use nothing of theirs, sweeps all it may."""
    third, cache = lay_out(tmp_path / "c"), tmp_path / "cache"
    (third.project / "project.yaml").write_text("model: {path: none.onnx}\ntargets: [rdk-x5]\n")
    with ExitStack() as stack:
        builds = [stack.enter_context(building(here, cache)) for here in pair]
        sweeps = 0
        while any(build.poll() is None for build in builds):
            if cache.is_dir():
                run = npumake(third, cache, "cache", "gc", *options, check=False)
                assert run.returncode in (0, 5 if options else 0), run.stderr
                sweeps += 1
            time.sleep(0.2)
        assert sweeps > 0
        for build in builds:
            output(build)
    for here in pair:
        assert here.digests() == built_once.digests()
    assert npumake(third, cache, "cache", "verify").returncode == 0
