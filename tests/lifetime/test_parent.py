"""A process ends with the one that started it, and a command with all that it started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import npumake
from npumake.lifetime.parent import CANNOT_RUN, end_with_parent, run_supervised, supervised
from processes import environment, eventually, marked

ROOT = Path(npumake.__file__).parents[1]
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="the kernel tells it on Linux")

# A compiler that is a script: it starts a program, which starts another, and waits.
TREE = "sh -c 'sleep 600; :' & sleep 600 & echo started; wait"
STARTS_A_TREE = f"""
import subprocess
from npumake.lifetime.parent import supervised
with subprocess.Popen(supervised(["sh", "-c", {TREE!r}])) as running:
    try:
        running.wait()
    finally:
        running.terminate()
"""
STARTS_A_WORKER = """
import os, time
from npumake.lifetime.parent import end_with_parent
parent = os.getpid()
if not os.fork():
    end_with_parent(parent)
    print("started", flush=True)
time.sleep(600)
"""


def ends(source: str, mark: str, number: int) -> bool:
    """Whether all that `source` starts ends when it is sent the signal."""
    with subprocess.Popen(
        [sys.executable, "-c", source],
        cwd=ROOT,
        env=environment(mark),
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        assert len(marked(mark)) > 1
        process.send_signal(number)
        process.wait()
        return eventually(lambda: not marked(mark))


@LINUX
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("source", [STARTS_A_TREE, STARTS_A_WORKER], ids=["command", "worker"])
def test_it_ends_however_its_parent_ends(source: str, number: int, tmp_path: Path) -> None:
    assert ends(source, str(tmp_path), number)


@LINUX
def test_a_parent_that_has_ended_already_is_missed(tmp_path: Path) -> None:
    child = os.fork()
    if not child:
        end_with_parent(parent=1 << 22)  # no process has that number
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


@pytest.mark.parametrize(
    ("script", "status"), [("exit 0", 0), ("exit 7", 7), ("kill -SEGV $$", -signal.SIGSEGV)]
)
def test_the_exit_status_is_that_of_the_command(script: str, status: int) -> None:
    assert subprocess.run(supervised(["sh", "-c", script]), check=False).returncode == status


def test_what_goes_in_and_comes_out_is_the_commands() -> None:
    done = subprocess.run(
        supervised([sys.executable, "-c", "import sys; print(input(), *sys.argv[1:])", "a b", "*"]),
        input="said",
        capture_output=True,
        text=True,
        check=True,
    )
    assert (done.stdout, done.stderr) == ("said a b *\n", "")


@LINUX
@pytest.mark.parametrize("name", ["no-such-command", "."])
def test_a_command_that_cannot_be_run_says_so(name: str) -> None:
    done = run_supervised([name], timeout=600)
    assert done.returncode == CANNOT_RUN
    assert name.encode() in done.stderr


@LINUX
def test_what_a_command_leaves_running_ends_with_it(tmp_path: Path) -> None:
    """Else its output would never end: who reads it would wait for ever."""
    mark = str(tmp_path)
    done = run_supervised(["sh", "-c", "sleep 600 & echo done"], 600, None, environment(mark))
    assert done.stdout == b"done\n"
    assert not marked(mark)


@LINUX
def test_nothing_is_left_of_a_command_that_takes_too_long(tmp_path: Path) -> None:
    mark = str(tmp_path)
    with pytest.raises(subprocess.TimeoutExpired):
        run_supervised(["sh", "-c", TREE], 0.5, None, environment(mark))
    assert eventually(lambda: not marked(mark))
