"""Temporaries of dead processes are swept, and no others."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import npumake
from npumake.lifetime.temporaries import (
    FOREIGN_AGE_S,
    owned,
    sweep,
    sweep_below,
    temporary_folder,
    temporary_name,
)

ROOT = Path(npumake.__file__).parents[1]
NAME = "from npumake.lifetime.temporaries import temporary_name; print(temporary_name('.onnx'))"


def name_of_a_dead_one() -> str:
    command = [sys.executable, "-c", NAME]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def age(path: Path, seconds: float) -> None:
    when = time.time() - seconds
    os.utime(path, (when, when))


@pytest.mark.parametrize(
    "form", ["{}", ".{}.123", "{}.npz", "..{}.hybrid.4711", "{}-journal"], ids=str
)
def test_what_a_dead_process_left_is_swept_also_what_a_library_wrote_beside_it(
    tmp_path: Path, form: str
) -> None:
    name = name_of_a_dead_one()
    (tmp_path / form.format(name)).touch()
    assert sweep(tmp_path) == 1
    assert os.listdir(tmp_path) == []


def test_a_folder_of_a_dead_process_is_swept_with_all_in_it(tmp_path: Path) -> None:
    folder = tmp_path / name_of_a_dead_one().replace(".tmp-", "npumake-").removesuffix(".onnx")
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "model.onnx").touch()
    assert sweep(tmp_path) == 1
    assert os.listdir(tmp_path) == []


def test_a_living_process_keeps_its_temporaries(tmp_path: Path) -> None:
    (tmp_path / temporary_name(".npz")).touch()
    assert sweep(tmp_path) == 0


def test_a_pid_that_another_process_has_by_now_saves_nothing(tmp_path: Path) -> None:
    place, pid, start = temporary_name()[len(".tmp-") :].split("-")[:3]
    (tmp_path / f".tmp-{place}-{pid}-{int(start) - 1}-0123456789ab").touch()
    assert sweep(tmp_path) == (1 if int(start) else 0)


def test_a_process_that_has_ended_and_is_not_yet_waited_for_is_dead(tmp_path: Path) -> None:
    command = [sys.executable, "-c", NAME]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        (tmp_path / process.stdout.read().strip()).touch()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert sweep(tmp_path) == 1


@pytest.mark.parametrize(
    "name",
    [
        ".tmp-0123456789ab-1-1-0123456789ab.onnx",  # another machine, boot or container
        ".tmp-somewhere.else-123456789-0123456789ab.onnx",  # of an older version
        "npumake-0123456789ab-1-1-0123456789ab",
    ],
)
def test_what_another_place_left_is_swept_after_a_day(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    assert sweep(tmp_path) == 0
    age(tmp_path / name, FOREIGN_AGE_S + 60)
    assert sweep(tmp_path) == 1
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "name",
    [
        ".gitignore",
        ".tmp-mine",
        "model.onnx",
        f".tmp-{os.uname().nodename}-x-y",
        "npumake-backup-20250101abcd",
        "tmp-0123456789ab-1-1-0123456789ab",
    ],
)
def test_what_is_called_otherwise_is_never_swept(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    age(tmp_path / name, 100 * FOREIGN_AGE_S)
    assert sweep(tmp_path) == 0
    assert os.listdir(tmp_path) == [name]


def test_the_sweep_goes_through_folders_and_not_through_links(tmp_path: Path) -> None:
    name = name_of_a_dead_one()
    inside, elsewhere = tmp_path / "out" / "@p999" / "deep", tmp_path / "elsewhere"
    inside.mkdir(parents=True)
    elsewhere.mkdir()
    (inside / name).touch()
    (elsewhere / name).touch()
    (tmp_path / "out" / "link").symlink_to(elsewhere)
    assert sweep_below(tmp_path / "out") == 1
    assert os.listdir(inside) == []
    assert os.listdir(elsewhere) == [name]


def test_an_absent_folder_holds_none(tmp_path: Path) -> None:
    assert sweep(tmp_path / "absent") == sweep_below(tmp_path / "absent") == 0


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_where_nothing_may_be_removed_it_stays(tmp_path: Path) -> None:
    (tmp_path / name_of_a_dead_one()).touch()
    tmp_path.chmod(0o555)
    sweep(tmp_path)
    tmp_path.chmod(0o755)
    assert len(os.listdir(tmp_path)) == 1


def test_an_owned_file_is_gone_when_the_block_ends(tmp_path: Path) -> None:
    with owned(tmp_path / "x"):
        (tmp_path / "x").touch()
    with owned(tmp_path / "never made"):
        pass
    assert os.listdir(tmp_path) == []


def test_a_temporary_folder_is_this_users_alone_and_gone_when_the_block_ends() -> None:
    with temporary_folder() as folder:
        assert folder.stat().st_mode & 0o777 == 0o700
        (folder / "deep").mkdir()
        (folder / "deep" / "x").touch()
    assert not folder.exists()
