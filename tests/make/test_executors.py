"""Where nodes run changes no byte: in this process, in threads of it, or in doit's own way."""

from __future__ import annotations

from pathlib import Path

import pytest

from clusters import artifacts
from npumake.cli.build import EXECUTORS as NAMES
from npumake.make.executors import EXECUTORS
from workspaces import Workspace, add_evaluation, lay_out

VARIANTS = "kl: {calibration: {method: kl}}\nsearch: {calibration: {method: default}}\n"
# Returns once two threads have called it.
MEETING = """\
import pathlib, threading, time
def metric(*_):
    folder = pathlib.Path({path!r})
    (folder / str(threading.get_ident())).touch()
    end = time.monotonic() + 100
    while len([*folder.iterdir()]) < 2:
        if time.monotonic() > end:
            raise ValueError("nothing runs beside this node")
        time.sleep(0.01)
    return 1.0
"""


def test_the_command_line_offers_every_executor() -> None:
    assert {*NAMES} == {*EXECUTORS}


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    workspace = with_variants(tmp_path_factory.mktemp("plain") / "w")
    workspace.npumake("build")
    return workspace


def with_variants(root: Path) -> Workspace:
    workspace = lay_out(root)
    workspace.project.joinpath("variants.yaml").write_text(VARIANTS)
    return workspace


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [("local",), ("threads", "-n", "3")])
def test_the_artifacts_are_those_of_a_plain_build(
    arguments: tuple[str, ...], plain: Workspace, tmp_path: Path
) -> None:
    here = with_variants(tmp_path / "here")
    here.npumake("build", "--executor", *arguments)
    assert artifacts(here) == artifacts(plain) != {}


@pytest.mark.slow
def test_two_threads_run_two_nodes_at_a_time(tmp_path: Path) -> None:
    here: Workspace = lay_out(tmp_path / "w")
    here.project.joinpath("variants.yaml").write_text("kl: {calibration: {method: kl}}\n")
    add_evaluation(here, 1)
    here.project.joinpath("gates.yaml").unlink()
    meeting = tmp_path / "meeting"
    meeting.mkdir()
    here.project.joinpath("metric.py").write_text(MEETING.format(path=str(meeting)))
    here.project.joinpath("evaluation.yaml").write_text(
        "dataset: {files: val/*/*.npy}\nmetric: metric.py:metric\nartifacts: [quantized]\n"
    )
    names = [f"digits{variant}:rdk-x5/quantized_score" for variant in ("", "@kl")]
    here.npumake("build", "--executor", "threads", "-n", "2", *names)
    assert len([*meeting.iterdir()]) == 2
