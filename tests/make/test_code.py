"""What belongs to a stage's code: modules, and no folders that lie where one was; what they say."""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from npumake import digest
from npumake.cache.sealed import sealed
from npumake.cache.signature import FileDigests
from npumake.make import code
from npumake.make.code import SourceCode, parsed


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "npumake"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "one.py").write_text("from npumake.two import x\n")
    (folder / "two.py").write_text("x = 1\n")
    monkeypatch.setattr(code, "PACKAGE", folder)
    return folder


def modules(package: Path) -> list[str]:
    found = SourceCode(FileDigests(package.parent / "files.json"), package.parent / "sources.json")
    return list(found.closure("npumake.one").modules)


def test_a_folder_that_another_version_left_hides_no_module(package: Path) -> None:
    (package / "two" / "__pycache__").mkdir(parents=True)
    assert modules(package) == ["npumake.one", "npumake.two"]


def test_a_room_goes_before_a_module_of_its_name(package: Path) -> None:
    (package / "two").mkdir()
    (package / "two" / "__init__.py").write_text("from npumake.three import x\n")
    (package / "three.py").write_text("x = 1\n")
    assert modules(package) == ["npumake.one", "npumake.three", "npumake.two"]


def test_a_memo_of_what_counted_otherwise_is_not_read(package: Path) -> None:
    source = SourceCode(FileDigests(package.parent / "files.json"), package.parent / "sources.json")
    right = source.closure("npumake.one").digest
    source.save()
    file = package.parent / "sources.json"
    memo = json.loads(file.read_text())["content"]
    wrong = {content: ["0" * 64, *imports] for content, (_, *imports) in memo.items()}
    reader = digest.of_file(Path(code.__file__))
    for written, expected in (
        (sealed(f"sources read by {reader}", wrong), False),
        (sealed("sources read by another", wrong), True),
        (file.read_bytes().replace(b'":["', b'":["0', 1), True),
    ):
        file.write_bytes(written)
        files = FileDigests(package.parent / "files.json")
        found = SourceCode(files, package.parent / "sources.json").closure("npumake.one").digest
        assert (found == right) is expected


def installed_memo(package: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What the first build in a cache leaves beside the bytecode, for other caches."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    source = SourceCode(FileDigests(package.parent / "files.json"), package.parent / "sources.json")
    source.closure("npumake.one")
    source.save()
    return package / "__pycache__" / "sources.json"


def in_a_new_cache(package: Path) -> str:
    cache = package.parent / "new"
    return (
        SourceCode(FileDigests(cache / "files.json"), cache / "memo").closure("npumake.one").digest
    )


def test_a_new_cache_reads_what_another_parsed(
    package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    right, file = in_a_new_cache(package), installed_memo(package, monkeypatch)
    assert in_a_new_cache(package) == right
    memo = json.loads(file.read_text())["content"]
    other = {content: ["0" * 64, *imports] for content, (_, *imports) in memo.items()}
    file.write_bytes(sealed(f"sources read by {digest.of_file(Path(code.__file__))}", other))
    assert in_a_new_cache(package) != right


DAMAGES = [lambda data: b"", lambda data: data[:-1], lambda data: data.replace(b'["', b'["0', 1)]


@pytest.mark.parametrize("damage", DAMAGES, ids=["emptied", "cut", "changed"])
def test_a_damaged_memo_beside_the_bytecode_is_not_read(
    damage: Callable[[bytes], bytes], package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    right, file = in_a_new_cache(package), installed_memo(package, monkeypatch)
    file.write_bytes(damage(file.read_bytes()))
    assert in_a_new_cache(package) == right


@pytest.mark.parametrize("is_off", [False, True])
def test_an_installation_without_bytecode_is_left_as_it_is(
    is_off: bool, package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", is_off)
    if not is_off:
        (package / "__pycache__").write_text("no folder")
    source = SourceCode(FileDigests(package.parent / "files.json"), package.parent / "sources.json")
    source.closure("npumake.one")
    source.save()
    assert (package.parent / "sources.json").exists()
    assert not (package / "__pycache__").is_dir()


def test_layout_comments_and_docstrings_say_nothing() -> None:
    text = Path(code.__file__).read_text()
    assert parsed(ast.unparse(ast.parse(text))) == parsed(text)
    assert parsed('"""Told."""\ndef f():\n    """Told."""\n    return 1  # one') == parsed(
        "def f(): return (1)"
    )


SAYINGS = [
    *("f(a, b)", "f(a)(b)", "f(a, *b)", "f(a, b=b)", "[a, b]", "(a, b)", "{a, b}", "{a: b}"),
    *("x = 1", "x = True", "x = 1.0", "x = '1'", "x = b'1'", "x = None", "x: int = 1", "x += 1"),
    *("def f(): pass", "async def f(): pass", "def f(a=1): pass", "def f(a, /): pass"),
    *("def f(*, a): pass", "def f(a, *b): pass", "def f(a): return", "@f\ndef f(): pass"),
    *("if a:\n b\n c", "if a:\n b\nc", "if a:\n b\nelse:\n c", "while a:\n b\n c", "'a'\n'b'"),
]


def test_what_is_said_otherwise_is_another_source() -> None:
    assert len({parsed(text).digest for text in SAYINGS}) == len(SAYINGS)


def test_what_only_type_checkers_read_says_nothing() -> None:
    plain = "from typing import TYPE_CHECKING\n"
    block = "if TYPE_CHECKING:\n    from npumake.api.table import Table\n"
    assert parsed(plain + block) == parsed(plain)
    assert parsed(plain + block + "else:\n    Table = None\n") != parsed(plain)


def test_imports_are_found_wherever_they_stand() -> None:
    text = "import os, numpy.linalg as l\ndef f():\n    from npumake.one import two"
    assert parsed(text).imports == ("npumake.one", "npumake.one.two", "numpy")
