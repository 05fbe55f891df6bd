"""Completion in real shells: each evaluates the script and is asked as Tab asks it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from npumake.cli.main import VERBS
from npumake.targets.reader import known_targets
from workspaces import REPO, Workspace, copied

BASH = """eval "$(npumake completion bash)"
COMP_LINE="$LINE" COMP_POINT=${#LINE} COMP_TYPE=9
_python_argcomplete npumake
printf '%s\\n' "${COMPREPLY[@]}" """
ZSH = """autoload -Uz compinit && compinit -D -u
eval "$(npumake completion zsh)"
BUFFER="$LINE" CURSOR=${#LINE} words=(npumake)
_describe() { print -l -- ${(P)2} }
_python_argcomplete"""
FISH = 'npumake completion fish | source; complete -C "$LINE"'
SHELLS = {"bash": BASH, "zsh": ZSH, "fish": FISH}


@pytest.fixture(scope="module")
def workspace(built_once: Workspace, tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    workspace = copied(built_once, tmp_path_factory.mktemp("completed") / "w")
    file = workspace.project / "project.yaml"
    file.write_text(file.read_text() + "\nvariants: {kl: {calibration: {method: kl}}}\n")
    script = workspace.root / "bin" / "npumake"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m npumake.cli.main "$@"\n')
    script.chmod(0o755)
    return workspace


def completed(workspace: Workspace, line: str, shell: str = "bash") -> list[str]:
    """What a shell offers behind `line`, without descriptions and the backslashes of zsh."""
    pytest.importorskip("argcomplete", reason="argcomplete is not installed here")
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    path = f"{workspace.root / 'bin'}{os.pathsep}{os.environ['PATH']}"
    run = subprocess.run(
        [shell, "-c", SHELLS[shell]],
        cwd=workspace.root,
        env={**os.environ, "PATH": path, "LINE": line, "HOME": str(workspace.root)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.stderr == ""
    lines = [each.partition("\t")[0].strip() for each in run.stdout.splitlines()]
    if shell == "zsh":  # name:description, with colons of the name escaped
        lines = [each.replace("\\:", "\0").partition(":")[0].replace("\0", ":") for each in lines]
    return [each for each in lines if each]


@pytest.mark.slow
@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_completes_verbs_options_choices_and_names(
    shell: str, workspace: Workspace
) -> None:
    assert completed(workspace, "npumake bu", shell) == ["build", "bundle"]
    assert completed(workspace, "npumake list --form", shell) == ["--format"]
    assert completed(workspace, "npumake list --format m", shell) == ["markdown"]
    assert completed(workspace, "npumake build dig", shell) == ["digits"]
    assert completed(workspace, "npumake doctor --target ara", shell) == ["ara240"]


def test_all_verbs_are_offered(workspace: Workspace) -> None:
    assert completed(workspace, "npumake ") == sorted(VERBS)


def test_every_target_is_offered(workspace: Workspace) -> None:
    assert completed(workspace, "npumake targets ") == sorted(known_targets())


@pytest.mark.slow
def test_variants_and_nodes_are_offered_behind_their_mark(workspace: Workspace) -> None:
    # bash breaks words at `@` and `:`: it gets what stands behind the last one
    assert completed(workspace, "npumake build digits@") == ["kl"]
    nodes = completed(workspace, "npumake why digits:rdk-x5/q")
    assert nodes == ["rdk-x5/quantized"]
    builds = completed(workspace, "npumake compare digits:")
    assert sorted(builds) == ["ara240", "rdk-x5"]


@pytest.mark.slow
def test_artifacts_are_files_and_nodes(workspace: Workspace) -> None:
    names = completed(workspace, "npumake show projects/digits/out/quantized.")
    assert sorted(names) == [
        f"projects/digits/out/quantized.{chip}.onnx" for chip in ("ara240", "rdk-x5")
    ]
    nodes = {f"ara240/{stage}" for stage in ("comparison", "compiled", "compiled_check")}
    assert {*completed(workspace, "npumake show digits:ara240/comp")} == nodes


def test_a_number_is_not_completed_with_files(workspace: Workspace) -> None:
    assert completed(workspace, "npumake build -n ") == []


def test_actions_of_a_verb_are_offered(workspace: Workspace) -> None:
    assert completed(workspace, "npumake cache p") == ["pin", "push", "pull"]


@pytest.mark.slow
def test_a_broken_project_leaves_the_others(workspace: Workspace, tmp_path: Path) -> None:
    place = copied(workspace, tmp_path / "w")
    broken = place.root / "projects" / "broken"
    broken.mkdir()
    (broken / "project.yaml").write_text("targets: [")
    assert completed(place, "npumake why digits:rdk-x5/q") == ["rdk-x5/quantized"]
    assert completed(place, "npumake build b") == ["broken"]


def test_without_the_library_the_verb_says_how_it_is_installed(fresh: Workspace) -> None:
    code = "import sys; sys.modules['argcomplete'] = None\n"
    code += "from npumake.cli.main import main; sys.exit(main(['completion', 'bash']))"
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=fresh.root, capture_output=True, text=True, check=False
    )
    assert run.returncode == 2
    assert "hint: pip install argcomplete" in run.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("bild", "did you mean `build`?"),
        ("cache pus", "did you mean `push`?"),
        ("list --format cvs", "did you mean `csv`?"),
        ("list --fromat csv", "did you mean `--format`?"),
        ("debug blaim", "did you mean `blame`?"),
        ("zzz", "known: attest, bench, build"),
    ],
)
def test_a_misspelt_word_is_answered_with_the_nearest(
    line: str, hint: str, fresh: Workspace
) -> None:
    run = fresh.npumake(*line.split(), check=False)
    assert run.returncode == 2
    assert hint in run.stderr


def test_the_page_on_editors_names_each_shell() -> None:
    text = (REPO / "docs" / "editor.md").read_text()
    assert all(f"npumake completion {shell}" in text for shell in SHELLS)
