"""A hand-over described: what it holds, and what in it is other than it was written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from npumake import digest
from npumake.cli.main import main
from npumake.compilers.handover import Handover
from npumake.compilers.handover_package import LIST
from npumake.debug.describe import describe
from npumake.debug.handover_report import handover_parts
from npumake.errors import CacheError

FILES = {
    "calibration/0_x/0.bin": b"12",
    "calibration/0_x/1.bin": b"345",
    "model.onnx": b"6",
    "tool.yaml": b"a: 1\n",
}


@pytest.fixture
def packed(tmp_path: Path) -> Handover:
    listed = {"sha256": {name: digest.of_bytes(data) for name, data in FILES.items()}}
    every = FILES | {LIST: json.dumps(listed).encode()}
    return Handover(lambda: iter(sorted(every.items())))


def rows(path: Path) -> list[tuple[object, ...]]:
    return [row for row in describe(path).rows if row[0] != LIST]


def test_a_directory_and_its_zip_are_told_alike(packed, tmp_path):
    (tmp_path / "handed").mkdir()
    packed.lay_out(tmp_path / "handed")
    packed.save(tmp_path / "handed.zip")
    assert describe(tmp_path / "handed") == describe(tmp_path / "handed.zip")
    assert rows(tmp_path / "handed") == [
        ("calibration/0_x/", 2, 5, "as written"),
        ("model.onnx", 1, 1, "as written"),
        ("tool.yaml", 1, 5, "as written"),
    ]


def test_what_was_changed_since_is_told(packed, tmp_path, capsys):
    packed.lay_out(tmp_path)
    (tmp_path / "tool.yaml").write_bytes(b"a: 2\n")
    (tmp_path / "calibration/0_x/0.bin").unlink()
    (tmp_path / "product.bin").write_bytes(b"78")
    assert rows(tmp_path) == [
        ("calibration/0_x/", 1, 3, "as written"),
        ("calibration/0_x/", 1, 0, "gone"),
        ("model.onnx", 1, 1, "as written"),
        ("product.bin", 1, 2, "not in the list"),
        ("tool.yaml", 1, 5, "changed"),
    ]
    assert main(["show", str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["facts"]["not as written"] == 3


@pytest.mark.parametrize("said", ["", "[]", '{"sha256": 1}', "[" * 100_000])
def test_a_list_that_is_none_is_one_error(packed, tmp_path, said):
    packed.lay_out(tmp_path)
    (tmp_path / LIST).write_text(said)
    with pytest.raises(CacheError, match="is not the list of a hand-over"):
        describe(tmp_path)


def test_a_zip_without_a_list_is_no_hand_over(tmp_path):
    Handover(lambda: iter(FILES.items())).save(tmp_path / "other.zip")
    with pytest.raises(CacheError, match=r"handover\.json is missing"):
        handover_parts(tmp_path / "other.zip")
    assert describe(tmp_path / "other.zip").kind == "archive"
