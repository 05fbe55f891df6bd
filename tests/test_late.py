"""A module imported late is executed at its first use, once, and then is an ordinary one."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from threading import Barrier
from types import ModuleType

import pytest

from npumake.late import when_used

SLOW = "import time\ntime.sleep(0.05)\nmade.append(1)\nvalue = 7\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where modules called late_* may be written."""
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith("late_")]:
        del sys.modules[name]


def imported(name: str) -> ModuleType:
    with when_used(name):
        return import_module(name)


def test_it_waits_for_its_first_use(folder: Path) -> None:
    (folder / "late_one.py").write_text("import late_two\nvalue = late_two.value + 1\n")
    (folder / "late_two.py").write_text("value = 1\n")
    module = imported("late_one")
    assert "late_two" not in sys.modules
    assert sys.modules["late_one"] is module
    assert import_module("late_one") is module
    assert "late_two" not in sys.modules
    assert module.value == 2
    assert type(module) is ModuleType
    assert "late_two" in sys.modules


def test_a_package_is_executed_before_what_is_in_it(folder: Path) -> None:
    (folder / "late_room").mkdir()
    (folder / "late_room" / "__init__.py").write_text("value = 1\n")
    (folder / "late_room" / "inside.py").write_text("import late_room\nv = late_room.value\n")
    imported("late_room")
    assert import_module("late_room.inside").v == 1


def test_two_threads_see_it_whole_and_executed_once(folder: Path) -> None:
    (folder / "late_log.py").write_text("made = []\n")
    (folder / "late_slow.py").write_text("from late_log import made\n" + SLOW)
    module, barrier = imported("late_slow"), Barrier(4)

    def look() -> int:
        barrier.wait()
        return int(module.value)

    with ThreadPoolExecutor(4) as pool:
        assert [found.result() for found in [pool.submit(look) for _ in range(4)]] == [7] * 4
    assert import_module("late_log").made == [1]


def test_a_module_that_fails_fails_every_time(folder: Path) -> None:
    (folder / "late_broken.py").write_text("raise OSError('gone')\n")
    module = imported("late_broken")
    for _ in range(2):
        with pytest.raises(OSError, match="gone"):
            _ = module.value


def test_what_is_not_there_is_missed_at_the_import(folder: Path) -> None:
    with pytest.raises(ModuleNotFoundError, match="late_absent"):
        imported("late_absent")


def test_others_are_imported_as_ever(folder: Path) -> None:
    (folder / "late_other.py").write_text("value = 1\n")
    with when_used("late_one"):
        assert type(import_module("late_other")) is ModuleType
