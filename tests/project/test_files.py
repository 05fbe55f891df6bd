"""The files a project names."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npumake.errors import ProjectError, Route
from npumake.project.files import FileSource, pattern_files, source_files, sources
from npumake.project.sections import FileGlob, FilePath, Files, ModelSection, Sections

TREE = ("b.npy", "a.npy", "s/2.npy", "s/10.npy", "s/.hidden.npy", "s/x.txt", "s/t/3.npy")


@pytest.fixture
def tree(tmp_path) -> Path:
    for name in (*TREE, ".h/4.npy", "s/d.npy/5.npy"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    return tmp_path


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("*.npy", "a.npy b.npy"),
        ("s/*.npy", "10.npy 2.npy"),
        ("s/?.npy", "2.npy"),
        ("s/[0-9]*.npy", "10.npy 2.npy"),
        ("*/*.npy", "s/10.npy s/2.npy"),
        ("**/*.npy", "a.npy b.npy s/10.npy s/2.npy s/d.npy/5.npy s/t/3.npy"),
        ("s/**/3.npy", "t/3.npy"),
        ("s/**", "10.npy 2.npy d.npy/5.npy t/3.npy x.txt"),
        ("**/t/**/*", "s/t/3.npy"),
        ("s/2.npy", "2.npy"),
        ("s/../s/2*", "2.npy"),
        ("./s/2*", "2.npy"),
        (".h/*", "4.npy"),
        ("S/*.NPY", ""),
        ("s", "10.npy 2.npy x.txt"),
        ("s/", "10.npy 2.npy x.txt"),
        ("none/*.npy", ""),
        ("a.npy/*.npy", ""),
        ("none.npy", ""),
        (".", ""),
    ],
)
def test_a_pattern_finds_these_names(tree, pattern, names):
    found = pattern_files(tree, pattern)
    assert " ".join(name for name, _ in found) == names
    assert all(Path(path).is_file() for _, path in found)


def test_a_name_never_holds_the_root(tree):
    assert pattern_files(tree, "s/2*") == pattern_files(Path("elsewhere"), f"{tree}/s/2*")
    assert pattern_files(tree, "s/2*") == (("2.npy", f"{tree}/s/2.npy"),)


def test_links_to_files_count_and_links_to_folders_end_a_walk(tree):
    (tree / "s" / "link.npy").symlink_to(tree / "a.npy")
    (tree / "s" / "dead.npy").symlink_to(tree / "nothing")
    (tree / "s" / "loop").symlink_to(tree / "s")
    assert [n for n, _ in pattern_files(tree, "s/*.npy")] == ["10.npy", "2.npy", "link.npy"]
    assert [n for n, _ in pattern_files(tree, "s/**/2.npy")] == ["2.npy"]


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may list any folder")
def test_a_folder_that_cannot_be_listed_is_an_error(tree):
    (tree / "s").chmod(0)
    with pytest.raises(ProjectError, match="cannot list the folder"):
        pattern_files(tree, "s/*")
    (tree / "s").chmod(0o700)


@given(st.text("ab*?[]!-/.", min_size=1, max_size=12))
def test_any_pattern_is_answered(pattern):
    assert isinstance(pattern_files(Path(__file__).parent / "wrong", pattern.strip("/")), tuple)


def test_a_project_names_its_files():
    data = {"x.1": Files(FileGlob("s/*"))}
    sections = Sections(ModelSection(FilePath("m.onnx")), ("imx93",), data=data)
    assert sources(sections) == (
        FileSource(("model", "path"), "m.onnx", many=False),
        FileSource(("data", "x.1", "files"), "s/*", many=True),
    )
    assert sources(sections.model) == (FileSource(("path",), "m.onnx", many=False),)


def test_a_file_is_found_at_any_depth_of_a_type():
    @dataclass(frozen=True)
    class Deep:
        hooks: tuple[FilePath, ...] | None = None
        labels: Mapping[str, FilePath | None] | None = None
        one: FilePath | None = None
        note: str = "not a file"

    value = Deep((FilePath("a"), FilePath("b")), {"x": FilePath("c"), "y": None})
    assert [(s.route, s.pattern) for s in sources(value)] == [
        ("hooks.0", "a"),
        ("hooks.1", "b"),
        ("labels.x", "c"),
    ]


def test_one_file_is_taken_at_its_word(tree):
    (tree / "m[1].onnx").touch()
    source = FileSource(("model", "path"), "m[1].onnx", many=False)
    assert source_files(tree, source) == (("m[1].onnx", f"{tree}/m[1].onnx"),)
    assert source_files(tree, FileSource(("data",), "*.npy", many=True)) == pattern_files(
        tree, "*.npy"
    )


def test_a_variable_in_a_path_is_its_value(tree, monkeypatch):
    monkeypatch.setenv("WHERE", str(tree / "s"))
    one = FileSource(("model", "path"), "${ENV:WHERE}/2.npy", many=False)
    many = FileSource(("data",), "${ENV:WHERE}/*.npy", many=True)
    assert source_files(Path("elsewhere"), one) == (("2.npy", f"{tree}/s/2.npy"),)
    assert source_files(Path("elsewhere"), many) == pattern_files(tree, "s/*.npy")
    monkeypatch.setenv("WHERE", "s")
    assert source_files(tree, one) == (("2.npy", f"{tree}/s/2.npy"),)


def test_a_wild_value_of_a_variable_matches_only_itself(tmp_path, monkeypatch):
    for name in ("a[1]", "a1"):
        (tmp_path / name / "x").mkdir(parents=True)
        (tmp_path / name / "x" / "f.npy").touch()
    monkeypatch.setenv("WHERE", "a[1]")
    for pattern in ("${ENV:WHERE}/*/*.npy", "**/${ENV:WHERE}/*/f.npy"):
        found = source_files(tmp_path, FileSource(("data",), pattern, many=True))
        assert [Path(path).parts[-3] for _, path in found] == ["a[1]"]


@pytest.mark.parametrize("value", [None, ""])
def test_a_variable_without_a_value_is_an_error_at_its_key(tmp_path, monkeypatch, value):
    monkeypatch.delenv("WHERE", raising=False)
    if value is not None:
        monkeypatch.setenv("WHERE", value)
    source = FileSource(("data", "x", "files"), "${ENV:WHERE}/*.npy", many=True)
    with pytest.raises(ProjectError, match="`WHERE` is not set, or empty") as caught:
        source_files(tmp_path, source)
    assert caught.value.where == Route("data.x.files")


@pytest.mark.parametrize("name", ["${ENV:}", "${env:HOME}", "$HOME", "${ENV:A B}", "~"])
def test_what_only_looks_like_a_variable_is_taken_at_its_word(tree, name):
    (tree / name).touch()
    assert source_files(tree, FileSource(("m",), name, many=False)) == ((name, f"{tree}/{name}"),)
