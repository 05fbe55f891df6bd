"""What a build lacks is told before its first stage, all of it at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from npumake.cli.projects import builds
from npumake.compilers.adapters.adapter import ADAPTERS
from npumake.compilers.required import BUILT_IN, REQUIRED, missing_compiler
from npumake.errors import PipelineError
from npumake.make.build import Build
from npumake.make.maker import make
from npumake.targets.reader import known_targets, read_target
from npumake.targets.target import SUFFIXES
from workspaces import Workspace

WITHOUT = ("rk3588", "qnn-htp-v73")  # no machine of ours has these compilers


@pytest.fixture(autouse=True)
def no_interpreters(monkeypatch: pytest.MonkeyPatch) -> None:
    for adapter in ADAPTERS.values():
        monkeypatch.delenv(adapter.variable, raising=False)


def first_error(workspace: Workspace, yaml: str) -> PipelineError:
    """The error of the first node, which is the first stage of all."""
    with (workspace.project / "project.yaml").open("a") as file:
        file.write(f"\n{yaml}\n")
    ((_, build),) = builds(workspace.project)
    assert isinstance(build, Build)
    with pytest.raises(PipelineError) as caught:
        make(build, build.plan.nodes[0])
    assert not (workspace.project / "out" / "original_float.onnx").exists()
    return caught.value


def with_targets(workspace: Workspace, *targets: str) -> None:
    file = workspace.project / "project.yaml"
    text = file.read_text()
    file.write_text(text[: text.index("targets:")] + f"targets: [{', '.join(targets)}]\n")


def test_all_missing_compilers_are_one_error(fresh: Workspace) -> None:
    with_targets(fresh, "rdk-x5", *WITHOUT)
    error = first_error(fresh, "")
    assert error.exit_code == 4
    for target in WITHOUT:
        assert f"{target}: this target needs" in error.what
    assert "npumake build 'digits:rdk-x5/*'" in error.hint


def test_a_file_of_a_late_stage_is_missed_first(fresh: Workspace) -> None:
    error = first_error(fresh, "evaluation: {dataset: {files: 'none/*.jpg'}}")
    assert (error.exit_code, error.what) == (2, "no file matches `none/*.jpg`")


def test_the_other_targets_are_built_by_the_hint(fresh: Workspace) -> None:
    with_targets(fresh, "rdk-x5", WITHOUT[0])
    ((_, build),) = builds(fresh.project)
    assert isinstance(build, Build)
    chosen = {node.name for node in build.plan.nodes if node.target in (None, "rdk-x5")}
    build.memory.selected = frozenset(chosen)
    assert make(build, build.plan.nodes[0]).how == "made"


@pytest.mark.parametrize("backend", SUFFIXES)
def test_every_backend_is_built_in_or_says_what_it_needs(
    backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert backend in (*BUILT_IN, *REQUIRED, *ADAPTERS)
    if backend in ADAPTERS:
        error = missing_compiler(backend)
        assert error is not None
        assert error.hint


def test_a_vendor_s_tool_is_looked_for_on_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = {t.tool.command for name in known_targets() if (t := read_target(name)).tool}
    monkeypatch.setenv("PATH", str(tmp_path))
    for command in tools:
        error = missing_compiler("hybrid", command)
        assert error is not None
        assert error.what == f"`{command}` is not on PATH"
        (tmp_path / command).write_text("#!/bin/sh\n")
        (tmp_path / command).chmod(0o755)
        assert missing_compiler("hybrid", command) is None
