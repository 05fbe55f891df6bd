"""Nobody sees half a file: not after an exception, a kill, or a full disk."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import npumake
from npumake.cache.publish import replacing
from npumake.errors import CacheError
from npumake.lifetime.temporaries import sweep

ROOT = Path(npumake.__file__).parents[1]

KILLED_WHILE_WRITING = """
import os, signal, sys
from pathlib import Path
from npumake.cache.publish import replacing
with replacing(Path(sys.argv[1])) as temporary:
    temporary.write_bytes(b"half of the n")
    os.kill(os.getpid(), signal.SIGKILL)
"""

WRITE_A_MEGABYTE_INTO_LESS = """
import resource, sys
from pathlib import Path
from npumake.cache.publish import replacing
from npumake.errors import CacheError
resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))
try:
    with replacing(Path(sys.argv[1])) as temporary:
        temporary.write_bytes(bytes(1 << 20))
except CacheError as error:
    print(error.what, error.hint, sep="|")
"""


def python(source: str, *arguments: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", source, *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_the_new_file_appears_when_the_block_ends(tmp_path: Path) -> None:
    path = tmp_path / "made" / "for" / "it.onnx"
    with replacing(path) as temporary:
        temporary.write_bytes(b"new")
        assert not path.exists()
    assert path.read_bytes() == b"new"
    assert os.listdir(path.parent) == ["it.onnx"]


def test_the_temporary_lies_beside_the_file_and_has_its_suffix(tmp_path: Path) -> None:
    with replacing(tmp_path / "samples.npy") as temporary:
        temporary.touch()
        assert temporary.parent == tmp_path
        assert temporary.suffix == ".npy"
        assert temporary.name.startswith(".tmp-")


def write_half(path: Path) -> None:
    with replacing(path) as temporary:
        temporary.write_bytes(b"half of the n")
        raise ZeroDivisionError


def write_to_a_full_disk(path: Path) -> None:
    with replacing(path) as temporary:
        temporary.symlink_to("/dev/full")
        temporary.write_bytes(b"new")


def test_an_exception_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_bytes(b"old")
    with pytest.raises(ZeroDivisionError):
        write_half(path)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["report.html"]


def test_a_killed_process_leaves_the_old_file_and_its_leftover_is_swept(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_bytes(b"old")
    assert python(KILLED_WHILE_WRITING, path).returncode == -9
    assert path.read_bytes() == b"old"
    assert len(os.listdir(tmp_path)) == 2
    assert sweep(tmp_path) == 1
    assert os.listdir(tmp_path) == ["report.html"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_told_and_the_old_file_stays(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(b"old")
    with pytest.raises(CacheError) as caught:
        write_to_a_full_disk(path)
    assert caught.value.what == f"cannot write {path}: no space left on device"
    assert caught.value.hint.startswith("free some space")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["model.onnx"]


def test_a_file_size_limit_is_told_like_a_full_disk(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(b"old")
    done = python(WRITE_A_MEGABYTE_INTO_LESS, path)
    what, _, hint = done.stdout.strip().partition("|")
    assert what == f"cannot write {path}: file too large", done.stderr
    assert hint.startswith("free some space")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["model.onnx"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_directory_that_may_not_be_written_is_told(tmp_path: Path) -> None:
    shut = tmp_path / "shut"
    shut.mkdir(mode=0o555)
    with pytest.raises(CacheError, match="permission denied"), replacing(shut / "x") as temporary:
        temporary.touch()


def test_a_file_where_a_directory_should_be_is_told(tmp_path: Path) -> None:
    (tmp_path / "out").touch()
    path = tmp_path / "out" / "deep" / "x.onnx"
    with pytest.raises(CacheError, match=r"cannot write .*: not a directory"), replacing(path):
        pass


def test_a_directory_in_the_files_place_is_told(tmp_path: Path) -> None:
    (tmp_path / "x.onnx").mkdir()
    with pytest.raises(CacheError, match="is a directory"), replacing(tmp_path / "x.onnx") as new:
        new.touch()


def test_the_blocks_own_troubles_pass_through(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError), replacing(tmp_path / "x"):
        tmp_path.read_bytes()
