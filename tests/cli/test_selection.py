"""Every verb takes a project by its name, with its target, and by its folder, alike."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from draws import drawn_pairs, label
from npumake.cli.main import VERBS, main
from npumake.runtime import Session
from workspaces import Workspace, copied, made

# The command line of each verb that reads a project, `{}` in place of its name.
WHOLE = {
    "attest": "attest {}",
    "build": "build {}",
    "bundle": "bundle {} --no-build",
    "cache pin": "cache pin one {}",
    "check": "check {}",
    "ci": "ci {}",
    "diff": "diff {} {}",
    "graph": "graph {}",
    "list": "list {}",
    "list --scores": "list --scores {}",
    "lock": "lock {}",
    "validate": "validate {}",
    "why": "why {}",
}
OF_TARGET = {
    **{
        verb: WHOLE[verb] for verb in ("attest", "build", "bundle", "check", "graph", "list", "why")
    },
    "bench": "bench {} --frame_count 1",
    "compare": "compare {} --dump dump",
    "debug": "debug blame {} -d 1",
    "diff": "diff {} {}",
    "handover": "handover {} --out handed",
    "info": "info {}",
    "list --scores": "list --scores {}",
    "modify": "modify {}",
    "pack": "pack {} -o packed.hybrid",
    "perf": "perf {}",
    "precision": "precision {} --cosine 0.5",
    "run": "run {} digit.npy",
    "show": "show {}",
    "verify": "verify {}",
}
OTHERS = {
    "cache": "pin, pull and export take whole projects",
    "completion": "writes a script",
    "doctor": "examines the machine",
    "hb_compile": "takes the vendor's YAML",
    "hb_mapper": "takes the vendor's YAML",
    "new": "makes a project",
    "preprocess": "takes pictures",
    "report": "needs a `report:` section",
    "secure": "needs keys; its MODEL is read like that of modify",
    "synap": "takes the vendor's metafile",
    "targets": "lists chips",
    "watch": "does not end; it hands its names to build",
    "worker": "serves a cluster",
}
TYPED = ("digits", "projects/digits", "./projects/digits/", "ROOT/projects/digits")


def test_each_verb_is_listed_here() -> None:
    verbs = {line.split()[0] for line in (*WHOLE, *OF_TARGET, *OTHERS)}
    assert verbs == {*VERBS}


@pytest.fixture(scope="module")
def once(built_once: Workspace, tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """With a sample, the dump of a board that agrees, and statements of the compiled files."""
    workspace = copied(built_once, tmp_path_factory.mktemp("selected") / "w")
    digit = workspace.project / "samples" / "0000.npy"
    shutil.copy(digit, workspace.root / "digit.npy")
    bundle = workspace.project / "out" / "digits.rdk-x5.hybrid"
    session = Session(bundle)
    outputs = session.run(None, {"image": np.load(digit).reshape(1, 1, 8, 8)})
    workspace.root.joinpath("dump").mkdir()
    for name, values in zip(session.output_names, outputs, strict=True):
        np.save(workspace.root / "dump" / f"{name}.npy", values)
    workspace.npumake("attest")
    return workspace


@pytest.fixture
def here(once: Workspace, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    monkeypatch.chdir(once.root)
    monkeypatch.delenv("CI", raising=False)
    return once


def line(template: str, name: str, here: Workspace) -> list[str]:
    return template.replace("{}", name.replace("ROOT", str(here.root))).split()


@pytest.mark.parametrize(("verb", "name"), drawn_pairs(WHOLE, TYPED), ids=label)
def test_a_project_by_its_name_or_folder(here: Workspace, verb: str, name: str) -> None:
    assert main(line(WHOLE[verb], name, here)) == 0


@pytest.mark.parametrize(("verb", "name"), drawn_pairs(OF_TARGET, TYPED), ids=label)
def test_a_target_by_its_projects_name_or_folder(here: Workspace, verb: str, name: str) -> None:
    assert main(line(OF_TARGET[verb], f"{name}:rdk-x5", here)) == 0


@pytest.mark.parametrize("template", OF_TARGET.values(), ids=OF_TARGET)
@pytest.mark.parametrize(
    ("name", "near"), [("digits:rdk-x6", "rdk-x5"), ("digit:rdk-x5", "digits")]
)
def test_what_is_misspelled_is_one_error_with_the_name_that_was_meant(
    here: Workspace, capsys: pytest.CaptureFixture[str], template: str, name: str, near: str
) -> None:
    assert main(line(template, name, here)) == 2
    shown = capsys.readouterr().err
    assert shown.count("error: ") == 1
    assert near in shown.partition("hint: ")[2]


@pytest.mark.parametrize("verb", ["run", "bench", "info", "modify", "show"])
def test_one_file_of_several_targets_must_be_chosen(
    here: Workspace, capsys: pytest.CaptureFixture[str], verb: str
) -> None:
    assert main(line(OF_TARGET[verb], "digits", here)) == 2
    assert "digits:rdk-x5 or digits:ara240" in capsys.readouterr().err


@pytest.mark.parametrize("verb", ["run", "bench", "info", "modify", "show", "pack"])
def test_what_is_not_built_names_the_command_that_builds_it(
    fresh: Workspace, monkeypatch, capsys: pytest.CaptureFixture[str], verb: str
) -> None:
    monkeypatch.chdir(fresh.root)
    assert main(line(OF_TARGET[verb], "digits:rdk-x5", fresh)) == 2
    assert capsys.readouterr().err.endswith("hint: npumake build digits:rdk-x5\n")


@pytest.mark.slow
def test_build_of_a_target_leaves_the_others(fresh: Workspace) -> None:
    built = fresh.npumake("build", "digits:rdk-x5")
    assert "rdk-x5/compiled" in made(built, "made")
    assert not any(name.startswith("ara240") for name in made(built, "made"))


def test_a_verb_may_follow_two_dashes(here: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--", "list"]) == 0
    assert capsys.readouterr().out.startswith("current")


def test_build_where_no_project_is_names_none_as_built(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["build"]) == 2
    assert "error: no project here" in capsys.readouterr().err
