"""A build with several processes: one that is killed fails its node, and nothing waits for it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from processes import LIMIT, children, environment, eventually, marked
from workspaces import Workspace

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")

DODO = """
import os, signal, sys, time
from pathlib import Path
from npumake.dodo import doit_config

DOIT_CONFIG = doit_config()
DOIT_CONFIG["default_tasks"] = None

def wait(name):
    Path(name).touch()
    time.sleep(600)

def meet(name, other):
    Path(name).touch()
    while not Path(other).exists():
        time.sleep(0.01)

def end():
    sys.exit(5)

def fail():
    return False

def leave(name):
    Path(name).touch()

def after(task):
    Path(task).touch()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tmp").mkdir()
    return tmp_path


def doit(folder: Path, tasks: str, *arguments: str) -> subprocess.Popen[str]:
    (folder / "dodo.py").write_text(DODO + tasks)
    return subprocess.Popen(
        [sys.executable, "-m", "doit", *arguments],
        cwd=folder,
        env=environment(str(folder)),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


TWO_WAIT = """
def task_x():
    for name in ("one", "two"):
        yield {"name": name, "actions": [(wait, [name])]}
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGSEGV])
def test_a_dead_worker_fails_its_task_and_ends_the_others(folder: Path, number: int) -> None:
    with doit(folder, TWO_WAIT, "-n", "2") as build:
        assert eventually(lambda: (folder / "one").exists() and (folder / "two").exists())
        os.kill(children(build.pid)[0], number)
        output, _ = build.communicate(timeout=LIMIT)
    assert build.returncode == 1
    name = signal.Signals(number).name
    assert f"error: the process that built `x:one` ended with {name}" in output
    assert "1 failed in" in output
    assert not marked(str(folder))


def test_two_tasks_are_executed_at_once_and_their_values_come_back(folder: Path) -> None:
    tasks = """
def task_x():
    yield {"name": "one", "actions": [(meet, ["one", "two"])]}
    yield {"name": "two", "actions": [(meet, ["two", "one"])]}
    yield {"name": "three", "actions": [(leave, ["three"])], "task_dep": ["x:one", "x:two"]}
"""
    with doit(folder, tasks, "-n", "2") as build:
        output, _ = build.communicate(timeout=LIMIT)
    assert build.returncode == 0, output
    assert (folder / "three").exists()


def test_a_worker_that_exits_is_one_that_ended(folder: Path) -> None:
    with doit(folder, "def task_x():\n    return {'actions': [end]}\n", "-n", "2") as build:
        output, _ = build.communicate(timeout=LIMIT)
    assert build.returncode == 1
    assert "the process that built `x` ended with exit status 5" in output


def test_a_task_that_fails_lets_those_that_run_finish_and_starts_no_other(folder: Path) -> None:
    tasks = """
def task_a():
    return {"actions": [fail]}
def task_b():
    return {"actions": [(meet, ["b", "a-is-over"])]}
def task_c():
    return {"actions": [(leave, ["c"])], "task_dep": ["b"]}
"""
    with doit(folder, tasks, "-n", "2", "--no-continue") as build:
        assert build.stdout is not None
        assert build.stdout.readline().startswith("failed ")
        (folder / "a-is-over").touch()
        output, _ = build.communicate(timeout=LIMIT)
    assert build.returncode == 1
    assert (folder / "b").exists()
    assert not (folder / "c").exists(), output


def test_a_teardown_of_the_users_own_task_is_executed(folder: Path) -> None:
    tasks = """
def task_x():
    return {"actions": [(leave, ["x"])], "teardown": [(leave, ["torn down"])]}
"""
    with doit(folder, tasks, "-n", "2") as build:
        output, _ = build.communicate(timeout=LIMIT)
    assert build.returncode == 0, output
    assert (folder / "torn down").exists()


ALONE = """
import os
from multiprocessing import Pipe
from npumake.make.workers import _work

ours, theirs = Pipe()

class Read:
    send = theirs.send

    @staticmethod
    def recv():
        job = theirs.recv()
        ours.close()
        return job

class Written:
    recv = theirs.recv

    @staticmethod
    def send(result):
        theirs.send(result)
        ours.close()

ours.send("a job")
_work(str.upper, lambda: print("finished"), END, [], os.getppid())
"""


@pytest.mark.parametrize(("end", "told"), [("Read", ""), ("Written", "finished\n")])
def test_a_worker_whose_parent_has_ended_says_nothing(end: str, told: str) -> None:
    """The parent's end of the pipe is closed a moment before its death is noticed."""
    done = subprocess.run(
        [sys.executable, "-c", ALONE.replace("END", end)], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, told, "")


def test_damaged_notes_of_doit_are_no_notes(fresh: Workspace) -> None:
    """It writes them in place: a build that is killed there leaves half of them."""
    for text in ("", '{"digits:sam', "[]", "\x00"):
        (fresh.root / ".doit.db").write_text(text)
        done = fresh.doit("list", check=False)
        assert done.returncode == 0, done.stderr
