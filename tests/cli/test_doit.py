"""doit behaves as a doit user expects, in a project and above it."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

import pytest

from workspaces import Workspace, made

pytestmark = pytest.mark.slow


def test_list_shows_the_project_and_all_shows_its_nodes(built: Workspace) -> None:
    assert built.doit("list").stdout.split() == ["digits", "build", "digits"]
    everything = built.doit("list", "--all", "--status").stdout
    assert everything.count("U digits:") == 16
    assert "the same numbers with fewer nodes" in everything


def test_clean_removes_the_artifacts_and_the_next_build_recalls_them(built: Workspace) -> None:
    before = built.digests()
    built.doit("clean", "digits")
    assert built.digests() == {}
    run = built.doit()
    assert (len(made(run, "made")), len(made(run, "recalled"))) == (0, 16)
    assert built.digests() == before


def test_forget_forgets_nothing_that_matters(built: Workspace) -> None:
    built.doit("forget", "digits")
    built.doit("forget", "--all")
    assert "16 current" in built.doit().stdout


def test_a_node_is_built_with_what_it_needs_and_nothing_else(fresh: Workspace) -> None:
    run = fresh.doit("digits:ara240/quantized")
    shared = {"original_float", "optimized_float", "samples", "statistics"}
    assert made(run, "made") == shared | {"ara240/recipe", "ara240/calibrated", "ara240/quantized"}


def test_a_project_by_name_two_at_a_time(fresh: Workspace, built_once: Workspace) -> None:
    run = fresh.doit("-n", "2", "digits")
    assert len(made(run, "made")) == 16
    assert run.stdout.count("Quantized Cosine") == 2
    assert fresh.digests() == built_once.digests()


def test_in_the_project_itself(built: Workspace) -> None:
    inside = Workspace(built.project)
    assert "16 current" in inside.doit().stdout
    assert "16 current" in inside.doit("digits").stdout
    below = Workspace(built.project / "samples")
    assert "16 current" in below.doit("-k").stdout  # doit's own "look for a dodo.py above"


def test_a_task_nobody_knows_is_doits_own_error(built: Workspace) -> None:
    run = built.doit("digts", check=False)
    assert run.returncode != 0
    assert 'Invalid parameter: "digts"' in run.stdout + run.stderr


def test_not_a_terminal_means_plain_lines(fresh: Workspace) -> None:
    assert "\x1b" not in fresh.doit().stdout


def test_a_terminal_shows_progress_while_a_long_stage_runs(fresh: Workspace) -> None:
    parent, child = pty.openpty()
    environment = {k: v for k, v in os.environ.items() if k != "CI"} | {"TERM": "xterm-256color"}
    process = subprocess.Popen(
        [sys.executable, "-m", "doit"], cwd=fresh.root, stdout=child, stderr=child, env=environment
    )
    os.close(child)
    shown = b""
    while chunk := read(parent):
        shown += chunk
    assert process.wait() == 0
    assert b"digits:statistics" in shown
    assert b"/64" in shown  # samples done of all samples
    assert b"\x1b[2K" in shown  # the live line is taken away again


def read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 1 << 16)
    except OSError:  # Linux says EIO when the other end is closed
        return b""
