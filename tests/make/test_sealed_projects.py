"""A seal over a project holds while nothing that a build looks at has changed, and no longer."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from npumake.cache.signature import FINE_MARGIN_NS
from npumake.cli.sealed_projects import SealedProjects
from npumake.make.build import Build
from npumake.make.places import cache_directory, project_directories
from npumake.make.sealed_build import SealedBuild
from npumake.make.sealing import seal
from npumake.make.seals import Seals
from workspaces import Workspace, copied

pytestmark = pytest.mark.slow


@pytest.fixture
def project(built: Workspace, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    for name in ("CI", "NPUMAKE_PARANOID"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SAMPLES", "samples")
    monkeypatch.syspath_prepend(str(built.root / "site"))
    (built.root / "site").mkdir()
    file = built.project / "project.yaml"
    file.write_text(file.read_text().replace("samples/*", "${ENV:SAMPLES}/*"))
    planned(built)
    return built


def planned(workspace: Workspace) -> None:
    """The plan is stored, and old enough."""
    assert [*SealedProjects(workspace.root).entries()]
    time.sleep(2 * FINE_MARGIN_NS / 1e9)


def sealed(workspace: Workspace) -> None:
    """As after a build that found every node current."""
    projects = SealedProjects(workspace.root)
    builds = [entry for _, entry in projects.entries() if isinstance(entry, Build)]
    assert all(build.is_current(node) for build in builds for node in build.plan.nodes)
    seal(builds, projects.memory, projects.seals)


def holds(workspace: Workspace) -> bool:
    seals = Seals(workspace.root, cache_directory(workspace.root))
    seals.check(project_directories(workspace.root))
    return bool(seals.entries)


def overwritten(path: Path) -> None:
    """Another byte, in place, of the same size and time."""
    before, data = path.stat(), bytearray(path.read_bytes())
    data[-1] ^= 1
    path.chmod(0o644)
    path.write_bytes(data)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def first(workspace: Workspace, pattern: str) -> Path:
    return sorted(workspace.root.glob(pattern))[0]


def damage(pattern: str) -> Callable[[Workspace], object]:
    return lambda workspace: overwritten(first(workspace, pattern))


def removal(pattern: str) -> Callable[[Workspace], object]:
    return lambda workspace: first(workspace, pattern).unlink()


def new_file(name: str) -> Callable[[Workspace], object]:
    return lambda workspace: (workspace.root / name).write_bytes(b"")


def linked_away(folder: str) -> Callable[[Workspace], object]:
    """The folder is elsewhere, with a link in its place."""

    def change(workspace: Workspace) -> None:
        place = workspace.project / folder
        place.rename(workspace.root / "elsewhere")
        place.symlink_to(workspace.root / "elsewhere")

    return change


def library(workspace: Workspace) -> None:
    folder = workspace.root / "site/numpy-99.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: numpy\nVersion: 99\n")


P = "projects/digits"
CHANGES: dict[str, Callable[[Workspace], object]] = {
    "YAML": damage(f"{P}/project.yaml"),
    "YAML added": new_file(f"{P}/gates.yaml"),
    "model": damage(f"{P}/model.onnx"),
    "sample": damage(f"{P}/samples/*"),
    "sample added": new_file(f"{P}/samples/new.npy"),
    "sample removed": removal(f"{P}/samples/*"),
    "folder of samples linked away": linked_away("samples"),
    "out linked away": linked_away("out"),
    "artifact": damage(f"{P}/out/*.onnx"),
    "artifact removed": removal(f"{P}/out/*.onnx"),
    "file in out": new_file(f"{P}/out/.tmp-left"),
    "stamp": damage(f"{P}/out/.npumake/statistics.json"),
    "plan": damage(f"{P}/out/.npumake/plan.json"),
    "closure": damage("cache/closures/*.json"),
    "closure removed": removal("cache/closures/*.json"),
    "library": library,
    "seal": damage("cache/seals/*.json"),
    "seal removed": removal("cache/seals/*.json"),
}
VARIABLES = {
    "variable of a pattern": ("SAMPLES", "./samples"),
    "paranoid": ("NPUMAKE_PARANOID", "1"),
    "CI": ("CI", "true"),
    "variable of npumake": ("NPUMAKE_OPENVINO_PYTHON", "/bin/true"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_no_seal_holds_after_a_change(project: Workspace, change: str) -> None:
    assert not holds(project)
    sealed(project)
    assert holds(project)
    CHANGES[change](project)
    assert not holds(project)


@pytest.mark.parametrize("change", VARIABLES)
def test_no_seal_holds_in_another_environment(
    project: Workspace, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sealed(project)
    assert holds(project)
    monkeypatch.setenv(*VARIABLES[change])
    assert not holds(project)


def test_a_seal_holds_on_one_search_path(
    project: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    sealed(project)
    monkeypatch.syspath_prepend(str(project.root / "elsewhere"))
    assert not holds(project)


def test_every_source_of_the_package_is_sealed(project: Workspace) -> None:
    import npumake

    package = Path(npumake.__file__).parent
    sealed(project)
    content = Seals(project.root, cache_directory(project.root)).content()
    assert content is not None
    paths = {*content["program"]["paths"].split("\0")}
    assert {str(file) for file in package.rglob("*.py")} <= paths
    assert {str(file) for file in package.rglob("*.yaml")} <= paths


def test_a_young_file_is_not_sealed(project: Workspace) -> None:
    projects = SealedProjects(project.root)
    builds = [entry for _, entry in projects.entries() if isinstance(entry, Build)]
    os.utime(project.project / "model.onnx")  # after it was read
    seal(builds, projects.memory, projects.seals)
    assert not holds(project)


def test_a_dangling_link_among_sources_is_not_sealed(project: Workspace) -> None:
    """Its target may come without a trace in the folder."""
    (project.project / "samples/late.npy").symlink_to(project.root / "absent.npy")
    planned(project)
    sealed(project)
    assert not holds(project)


def test_a_copied_workspace_is_not_sealed(project: Workspace, tmp_path: Path) -> None:
    sealed(project)
    assert not holds(copied(project, tmp_path / "copy"))
    shutil.rmtree(tmp_path / "copy")


def test_a_sealed_build_is_not_believed_once_something_runs(project: Workspace) -> None:
    sealed(project)
    ((_, build),) = SealedProjects(project.root).entries()
    assert isinstance(build, SealedBuild)
    build.seals.is_trusted = True
    assert all(map(build.is_current, build.nodes))
    overwritten(first(project, f"{P}/samples/*"))
    build.seals.is_trusted = False
    assert {node.stage for node in build.nodes if not build.is_current(node)} >= {"samples"}
    assert build.is_current(next(n for n in build.nodes if n.stage == "original_float"))


OTHER_TASKS = """
from npumake.dodo import doit_config, task_npumake as tasks

DOIT_CONFIG = doit_config()

def another_sample():
    with open("projects/digits/model.onnx", "ab") as file:
        file.write(b"junk")

def task_sample():
    return {"actions": [another_sample]}

def task_npumake():
    for task in tasks():
        yield {**task, "task_dep": [*task.get("task_dep", ()), "sample"]}
"""


OTHER_GENERATOR = """
from npumake.dodo import doit_config, task_npumake as tasks

DOIT_CONFIG = doit_config()

def task_npumake():
    yield from tasks()

def task_sample():
    with open("projects/digits/model.onnx", "ab") as file:
        file.write(b"junk")
    return {"actions": [lambda: None]}
"""


@pytest.mark.parametrize("dodo", [OTHER_TASKS, OTHER_GENERATOR], ids=["task", "generator"])
def test_what_another_task_of_the_dodo_file_changes_is_seen(built: Workspace, dodo: str) -> None:
    for _ in range(2):
        built.doit()
    assert "16 current" in built.doit().stdout
    assert [*built.root.glob("cache/seals/*.json")]
    (built.root / "dodo.py").write_text(dodo)
    run = built.doit(check=False)
    assert "failed    digits:original_float" in run.stdout


def test_a_sealed_project_is_made_all_the_same_when_doit_is_told_to(built: Workspace) -> None:
    for _ in range(3):
        built.doit()
    assert "16 recalled" in built.doit("-a").stdout
    assert "16 recalled" in built.doit("-a", "-n", "2").stdout
