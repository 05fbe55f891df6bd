"""What belongs to a stage's code: modules, and no folders that lie where one was."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.cache.signature import FileDigests
from pipeline.make import code
from pipeline.make.code import SourceCode


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "pipeline"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "one.py").write_text("from pipeline.two import x\n")
    (folder / "two.py").write_text("x = 1\n")
    monkeypatch.setattr(code, "PACKAGE", folder)
    return folder


def modules(package: Path) -> list[str]:
    found = SourceCode(FileDigests(package.parent / "files.json"), package.parent / "sources.json")
    return list(found.closure("pipeline.one").modules)


def test_a_folder_that_another_version_left_hides_no_module(package: Path) -> None:
    (package / "two" / "__pycache__").mkdir(parents=True)
    assert modules(package) == ["pipeline.one", "pipeline.two"]


def test_a_room_goes_before_a_module_of_its_name(package: Path) -> None:
    (package / "two").mkdir()
    (package / "two" / "__init__.py").write_text("from pipeline.three import x\n")
    (package / "three.py").write_text("x = 1\n")
    assert modules(package) == ["pipeline.one", "pipeline.three", "pipeline.two"]
