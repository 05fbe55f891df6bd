"""What a change touches: the files a project reads, or read; another key than the locked one."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from npumake.cli.projects import configuration_files, selected
from npumake.digest import of_document
from npumake.errors import ProjectError
from npumake.make import touched
from npumake.make.base import Base
from npumake.make.build import Build
from npumake.make.git import Commit, commit_before
from npumake.make.lock import Lock, LockedArtifact, locked_name

PROJECT = """model: {path: model.onnx, weights: weights/*.bin}
data: {image: {files: samples/*.npy}}
calibration: {method: max}
custom_operators: [{files: ops/*.py, with: [ops/lib/*.py]}]
targets: [rdk-x5, ara240]
"""
VENDOR = "model_parameters: {}\n"
Act = Callable[[Path], object]


def git(root: Path, *arguments: str) -> str:
    command = ["git", "-c", "user.name=me", "-c", "user.email=me@example.com", *arguments]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def write(path: Path, text: str = "x") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache of all tests here: it remembers our own code, and nothing is built."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def root(tmp_path: Path, store: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace of two projects in a folder of a repository."""
    monkeypatch.setenv("NPUMAKE_CACHE", str(store))
    workspace = tmp_path / "repository" / "models"
    for name in ("a", "b"):
        project = workspace / "projects" / name
        write(project / "project.yaml", PROJECT)
        for file in ("model.onnx", "weights/w.bin", "ops/own.py", "ops/lib/gain.py", "train.py"):
            write(project / file, f"{name} {file}")
        for number in range(3):
            write(project / "samples" / f"{number}.npy", f"{name} {number}")
        write(project / "samples" / "README.md")
    write(workspace / "dodo.py")
    write(workspace / "shared/0.npy", "shared")
    git(tmp_path, "init", "-q", "-b", "main", "repository")
    write(tmp_path / "repository/.gitignore", "cache/\nout/\n")
    record(workspace)
    return workspace


def record(root: Path) -> None:
    git(root, "add", "-A", ".")
    git(root, "commit", "-q", "-m", "x", "--allow-empty")


def builds(root: Path) -> dict[str, Build]:
    return {build.plan.project: build for build in selected(root, [])}


def reasons(root: Path, ref: str = "main", lock: Lock | None = None) -> dict[str, list[str]]:
    touched._ways.cache_clear()
    commit = commit_before(Path(git(root, "rev-parse", "--show-toplevel")), ref)
    base = Base(commit, commit.changes(), lock)
    return {
        name: list(touched.reasons(build, configuration_files(build), base.changes, base.lock))
        for name, build in builds(root).items()
    }


def names_of(root: Path, act: Act, is_committed: bool) -> set[str]:
    act(root)
    if is_committed:
        git(root, "checkout", "-q", "-b", "topic")
        record(root)
    return {name for name, why in reasons(root).items() if why}


def edit(name: str) -> Act:
    return lambda root: write(root / name, (root / name).read_text() + "\n")


def add(name: str) -> Act:
    return lambda root: write(root / name)


def remove(name: str) -> Act:
    return lambda root: (root / name).unlink()


def rename(name: str, other: str) -> Act:
    return lambda root: (root / name).rename(root / other)


ACTS: dict[str, tuple[Act, str]] = {
    "YAML": (edit("projects/a/project.yaml"), "a"),
    "a section added": (
        lambda root: write(root / "projects/a/gates.yaml", "- {cosine: 0.5}\n"),
        "a",
    ),
    "model": (edit("projects/a/model.onnx"), "a"),
    "weights": (edit("projects/a/weights/w.bin"), "a"),
    "weights added": (add("projects/a/weights/v.bin"), "a"),
    "operator": (edit("projects/a/ops/own.py"), "a"),
    "module of an operator": (edit("projects/a/ops/lib/gain.py"), "a"),
    "sample": (edit("projects/a/samples/0.npy"), "a"),
    "sample added": (add("projects/a/samples/9.npy"), "a"),
    "sample removed": (remove("projects/a/samples/0.npy"), "a"),
    "sample renamed": (rename("projects/a/samples/0.npy", "projects/a/samples/7.npy"), "a"),
    "sample renamed out": (rename("projects/a/samples/0.npy", "projects/a/old.npy"), "a"),
    "sample moved": (rename("projects/a/samples/0.npy", "projects/b/samples/7.npy"), "ab"),
    "lock file": (add("projects/a/npumake.lock"), "a"),
    "no file of a project": (add("README.md"), ""),
    "a file that no key names": (edit("projects/a/train.py"), ""),
    "a file beside the samples": (edit("projects/a/samples/README.md"), ""),
    "a hidden sample": (add("projects/a/samples/.0.npy"), ""),
    "another folder of that name": (add("samples/0.npy"), ""),
    "nothing": (lambda root: None, ""),
    "what git ignores": (add("projects/a/out/x.yaml"), ""),
}


@pytest.mark.slow(cases=24)
@pytest.mark.parametrize("is_committed", [True, False])
@pytest.mark.parametrize("act", ACTS)
def test_a_change_touches_the_projects_that_read_it(root, act, is_committed) -> None:
    change, expected = ACTS[act]
    assert names_of(root, change, is_committed) == set(expected)


def prepared(root: Path, yaml: str, prepare: Act) -> None:
    """The base has project `a` with this YAML."""
    prepare(root)
    write(root / "projects/a/project.yaml", yaml)
    record(root)


LINKED = PROJECT.replace("samples/*.npy", "linked/*.npy")


def link(name: str, target: str) -> Act:
    def act(root: Path) -> None:
        (root / name).unlink(missing_ok=True)
        (root / name).symlink_to(target)

    return act


@pytest.mark.parametrize(
    ("prepare", "change"),
    [
        (link("projects/a/linked", "../../shared"), edit("shared/0.npy")),
        (link("projects/a/linked", "../../shared"), add("shared/1.npy")),
        (link("projects/a/linked", "../../shared"), link("projects/a/linked", "samples")),
        (link("projects/a/linked", "link2"), None),
    ],
)
def test_a_folder_that_is_a_link_is_followed(root, prepare, change) -> None:
    if change is None:  # a link to a link, of which the second is turned
        link("projects/a/link2", "samples")(root)
        change = link("projects/a/link2", "../../shared")
    prepared(root, LINKED, prepare)
    assert names_of(root, change, is_committed=True) == {"a"}


def test_a_removed_sample_of_a_linked_folder_counts(root) -> None:
    add("shared/1.npy")(root)
    prepared(root, LINKED, link("projects/a/linked", "../../shared"))
    assert names_of(root, remove("shared/1.npy"), is_committed=True) == {"a"}


def test_a_sample_that_is_a_link_is_followed(root) -> None:
    prepared(root, PROJECT, link("projects/a/samples/0.npy", "../../../shared/0.npy"))
    assert names_of(root, edit("shared/0.npy"), is_committed=True) == {"a"}


@pytest.mark.parametrize("pattern", ["../../shared/*.npy", "../../shared", "../../shared/**/*.npy"])
def test_files_elsewhere_are_read_and_two_projects_may_share_them(root, pattern) -> None:
    yaml = PROJECT.replace("samples/*.npy", pattern)
    for name in ("a", "b"):
        write(root / f"projects/{name}/project.yaml", yaml)
    add("shared/1.npy")(root)
    record(root)
    assert names_of(root, remove("shared/0.npy"), is_committed=True) == {"a", "b"}


def test_a_folder_in_a_variable_is_that_of_its_value(root, monkeypatch) -> None:
    monkeypatch.setenv("SET", "shared")
    add("shared/1.npy")(root)
    yaml = PROJECT.replace("samples/*.npy", "'../../${ENV:SET}/*.npy'")
    prepared(root, yaml, lambda _: None)
    assert names_of(root, remove("shared/0.npy"), is_committed=True) == {"a"}


def test_a_project_whose_samples_are_all_removed_is_touched(root) -> None:
    shutil.rmtree(root / "projects/a/samples")
    assert "no file matches" in "".join(reasons(root)["a"])


def test_the_sources_of_npumake_touch_every_project(root, monkeypatch) -> None:
    monkeypatch.setattr(touched, "PACKAGE", root / "pipeline/npumake")
    assert names_of(root, add("pipeline/npumake/kernels/conv.py"), is_committed=True) == {"a", "b"}


def test_a_change_of_the_base_after_the_branch_began_does_not_count(root) -> None:
    git(root, "checkout", "-q", "-b", "topic")
    edit("projects/a/model.onnx")(root)
    record(root)
    git(root, "checkout", "-q", "main")
    edit("projects/b/model.onnx")(root)
    record(root)
    git(root, "checkout", "-q", "topic")
    assert {name for name, why in reasons(root).items() if why} == {"a"}


def test_a_name_with_every_character_is_understood(root) -> None:
    name = 'projects/a/samples/ü "\n\t*.npy'
    assert names_of(root, add(name), is_committed=True) == {"a"}


# -- keys --------------------------------------------------------------------------------------


def locked(build: Build) -> Lock:
    """A lock of invented artifacts, with the keys that follow from them."""
    lock = Lock({})
    for node in build.plan.nodes:
        inputs = touched._locked_inputs(build, node, lock)
        assert inputs is not None
        name = locked_name(node)
        key = of_document(build.document(node, inputs))
        lock = Lock({**lock.artifacts, name: LockedArtifact(of_document(name), key, 1)})
    build.memory.save()
    return lock


def test_keys_that_are_the_locked_ones_touch_nothing(root) -> None:
    assert reasons(root, lock=locked(builds(root)["a"]))["a"] == []


def test_another_version_of_a_library_touches_the_projects_that_use_it(root, monkeypatch) -> None:
    lock = locked(builds(root)["a"])
    document = Build.document

    def of_another_version(build, node, inputs):
        key = document(build, node, inputs)
        return {**key, "tools": {**key["tools"], "onnxruntime": "0.0"}}

    monkeypatch.setattr(Build, "document", of_another_version)
    (why,) = reasons(root, lock=lock)["a"]
    assert why.startswith("a:original_float: ")


@pytest.mark.parametrize("name", ["samples", "rdk-x5/compiled", "ara240/comparison"])
def test_another_key_of_any_node_counts(root, name) -> None:
    lock = locked(builds(root)["a"])
    other = {name: replace(lock.artifacts[name], key="0" * 64)}
    (why,) = reasons(root, lock=Lock({**lock.artifacts, **other}))["a"]
    assert why.startswith(f"a:{name}: ")


# -- git ---------------------------------------------------------------------------------------


def test_an_unknown_commit_is_an_error_that_says_how_to_get_it(root) -> None:
    with pytest.raises(ProjectError, match="no commit `nowhere`") as raised:
        commit_before(root.parent, "nowhere")
    assert "fetch" in raised.value.hint


@pytest.mark.parametrize("ref", ["--output=x", "-h", "--upload-pack=x", "HEAD:models", ""])
def test_a_ref_is_never_an_option(root, ref) -> None:
    with pytest.raises(ProjectError):
        commit_before(root.parent, ref)
    assert not os.path.lexists(root.parent / "x")


def test_an_unrelated_history_is_compared_with_as_it_is(root) -> None:
    name = git(root, "rev-parse", "HEAD")
    git(root, "checkout", "-q", "--orphan", "alone")
    git(root, "commit", "-q", "-m", "x")
    assert commit_before(root.parent, "main").name == name


def test_a_file_is_read_as_it_was(root) -> None:
    commit = commit_before(root.parent, "HEAD")
    model = root / "projects/a/model.onnx"
    before = model.read_bytes()
    remove("projects/a/model.onnx")(root)
    assert commit.file(model) == before
    assert commit.file(root / "projects/a/nothing") is None
    assert commit.file(root / "projects") is None


def test_git_means_the_repository_at_the_path_also_in_a_hook_of_another(root, monkeypatch) -> None:
    monkeypatch.setenv("GIT_DIR", "elsewhere")
    monkeypatch.setenv("GIT_INDEX_FILE", "elsewhere/index")
    top = root.parent
    assert isinstance(commit_before(top, "HEAD"), Commit)
