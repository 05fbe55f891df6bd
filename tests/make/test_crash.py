"""Whatever interrupts a build, nothing half-made is seen and the next build converges."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time

import pytest

from workspaces import Workspace


def start(workspace: Workspace, **options: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "doit"],
        cwd=workspace.root,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        **options,  # type: ignore[call-overload]
    )


@pytest.mark.slow
def test_kill_minus_9_at_any_moment_loses_nothing(fresh: Workspace, built_once: Workspace) -> None:
    expected = built_once.digests()
    for step in range(12):
        build = start(fresh)
        # From before the first import to beyond the last artifact.
        time.sleep(0.15 + 0.12 * step)
        os.kill(build.pid, signal.SIGKILL)
        build.communicate()
        for name, found in fresh.digests().items():
            assert name.startswith(".tmp-") or found == expected[name], f"half a file: {name}"
    fresh.doit()
    assert fresh.digests() == expected


@pytest.mark.slow
def test_a_full_disk_is_one_clear_error_and_the_next_build_converges(
    fresh: Workspace, built_once: Workspace
) -> None:
    def small_disk() -> None:
        # No file above 400 kB: statistics.npz does not fit, the memos do. Python ignores SIGXFSZ.
        resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))

    build = start(fresh, preexec_fn=small_disk)
    output, _ = build.communicate()
    assert build.returncode != 0
    assert "error: cannot write" in output
    assert "statistics.npz" in output
    assert "nothing was lost" in output
    assert "Traceback" not in output
    fresh.doit()
    assert fresh.digests() == built_once.digests()


@pytest.mark.slow
def test_a_memo_that_cannot_be_written_is_a_warning_and_the_build_stands(fresh: Workspace) -> None:
    build = start(fresh, env=os.environ | {"NPUMAKE_PARANOID": "1"})  # it learns to the very end
    assert build.stdout is not None
    assert "original_float" in build.stdout.readline()
    memo = fresh.root / "cache" / "files.json"
    memo.unlink()
    memo.mkdir()
    output, _ = build.communicate()
    assert build.returncode == 0, output
    assert "warning: cannot write" in output
    assert "Traceback" not in output


@pytest.mark.slow
def test_three_builds_at_once_are_as_good_as_one(fresh: Workspace, built_once: Workspace) -> None:
    builds = [start(fresh) for _ in range(3)]
    for build in builds:
        output, _ = build.communicate()
        assert build.returncode == 0, output
    assert fresh.digests() == built_once.digests()
    assert "16 current" in fresh.doit().stdout
