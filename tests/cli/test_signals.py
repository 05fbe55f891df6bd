"""SIGINT and SIGTERM end a process of ours at any moment: 130 or 143, one line, no traceback."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from npumake.cli.signals import LINE
from processes import LIMIT, environment, eventually
from workspaces import REPO, Workspace

SIGNALS = (signal.SIGTERM, signal.SIGINT)

# What the main thread is in when the signal comes. None of it ends by itself.
MOMENTS = {
    "in Python": "while True: pass",
    "waiting": "import time; time.sleep(600)",
    "in a library": "import ctypes; [ctypes.CDLL(None).sleep(600) for _ in range(9)]",
    "waiting for threads": (
        "from concurrent.futures import ThreadPoolExecutor\n"
        "with ThreadPoolExecutor(2) as pool: pool.submit(__import__('time').sleep, 600).result()"
    ),
    "swallowing exceptions": (
        "import time\nwhile True:\n  try: time.sleep(600)\n  except BaseException: pass"
    ),
    "printing what nobody reads": "while True: print('x' * (1 << 20))",
}
OURS = "from npumake.cli.signals import end_at_signals\nend_at_signals()\n"


def start(code: str, **options: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=REPO,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,  # type: ignore[call-overload]
    )


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("code", MOMENTS.values(), ids=MOMENTS)
def test_it_ends_whatever_the_main_thread_does(code: str, number: int) -> None:
    with start(f"{OURS}print('begun', flush=True)\n{code}") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        process.send_signal(number)
        assert process.wait(LIMIT) == 128 + number
        assert process.stderr is not None
        assert process.stderr.read() == f"{LINE}\n"


@pytest.mark.parametrize("number", SIGNALS)
def test_its_temporaries_are_gone(tmp_path: Path, number: int) -> None:
    code = """
import time
from pathlib import Path
from npumake.cache.publish import replacing
from npumake.lifetime.temporaries import temporary_folder
with temporary_folder() as folder, replacing(Path("x")) as temporary:
    temporary.touch()
    (folder / "y").touch()
    print("begun", flush=True)
    time.sleep(600)
"""
    variables = environment("", TMPDIR=str(tmp_path), PYTHONPATH=str(REPO / "pipeline"))
    with start(f"import os; os.chdir({str(tmp_path)!r})\n{OURS}{code}", env=variables) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert len(os.listdir(tmp_path)) == 2
        process.send_signal(number)
        process.communicate(timeout=LIMIT)
    assert os.listdir(tmp_path) == []


def test_a_signal_that_is_ignored_stays_so() -> None:
    """As in the background of a script, which a Ctrl-C is not for."""
    code = f"import signal, os\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n{OURS}"
    with start(f"{code}os.kill(os.getpid(), signal.SIGINT); print('goes on')") as process:
        assert process.communicate(timeout=LIMIT) == ("goes on\n", "")
    assert process.returncode == 0


# A module that each of them loads, and that takes for ever.
COMMANDS = {
    "npumake": (["-m", "npumake.cli.main", "build"], "difflib"),
    "npumake run": (["-m", "npumake.cli.main", "run", "x.onnx"], "difflib"),
    "console script": (["-c", "from npumake.cli.main import main; main()", "list"], "argparse"),
    "doit": (["-m", "doit"], "difflib"),
    "doit -n 2": (["-m", "doit", "-n", "2"], "difflib"),
}


@pytest.mark.slow
@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize(("command", "module"), COMMANDS.values(), ids=COMMANDS)
def test_it_ends_while_modules_are_loaded(
    command: Sequence[str], module: str, number: int, fresh: Workspace, tmp_path: Path
) -> None:
    late = "import time\nfrom pathlib import Path\nPath('begun').touch()\ntime.sleep(600)\n"
    (tmp_path / f"{module}.py").write_text(late)
    with subprocess.Popen(
        [sys.executable, *command],
        cwd=fresh.root,
        env=environment("", PYTHONPATH=os.pathsep.join([str(tmp_path), str(REPO / "pipeline")])),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert eventually((fresh.root / "begun").exists)
        process.send_signal(number)
        output, _ = process.communicate(timeout=LIMIT)
    assert process.returncode == 128 + number
    assert output == f"{LINE}\n"
