"""npumake doctor and targets: what is there, what is missing, and the line that installs it."""

from __future__ import annotations

import csv
import json
import sys

import pytest

from npumake.cli.main import main
from npumake.compilers.adapters.adapter import ADAPTERS
from npumake.extras import EXTRAS, install_line
from npumake.targets.reader import known_targets


@pytest.fixture(autouse=True)
def no_interpreters(monkeypatch: pytest.MonkeyPatch) -> None:
    for adapter in ADAPTERS.values():
        monkeypatch.delenv(adapter.variable, raising=False)


def test_the_doctor_knows_every_target_and_package(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in report["targets"]] == [*known_targets()]
    assert set(EXTRAS) <= {row["name"] for row in report["packages"]}
    assert all(bool(row["version"]) != bool(row["install"]) for row in report["packages"])
    assert all(bool(row["missing"]) == bool(row["install"]) for row in report["targets"])
    assert report["threads"] >= 1
    assert report["memory"]["total"] > 0


def test_the_doctor_fails_for_a_target_that_cannot_be_built(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["doctor", "--target", "rk3588"]) == 4
    assert "NPUMAKE_RKNN_PYTHON" in capsys.readouterr().err
    assert main(["doctor", "--target", "rdk-x5"]) == 0
    assert "ready     rdk-x5" in capsys.readouterr().out


def test_targets_agree_with_the_doctor(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["targets", "--json"]) == 0
    ready = {row["name"]: row["ready"] for row in json.loads(capsys.readouterr().out)}
    main(["doctor", "--json"])
    report = json.loads(capsys.readouterr().out)
    assert ready == {row["name"]: not row["missing"] for row in report["targets"]}


@pytest.mark.parametrize("verb", ["targets", "doctor --target"])
def test_an_unknown_chip_is_one_error(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*verb.split(), "rdk-x6"]) == 2
    assert "did you mean `rdk-x5`?" in capsys.readouterr().err


def test_a_table_is_the_same_as_csv_and_markdown(capsys: pytest.CaptureFixture[str]) -> None:
    texts = {}
    for form in ("csv", "markdown"):
        assert main(["targets", "rdk-x5", "rk3588", "--format", form]) == 0
        texts[form] = capsys.readouterr().out
    rows = [*csv.reader(texts["csv"].splitlines())]
    lines = [line.strip("| ").split(" | ") for line in texts["markdown"].splitlines()]
    assert lines[1] == ["---"] * len(rows[0])
    assert [lines[0], *lines[2:]] == rows


@pytest.mark.parametrize(
    ("by", "line"),
    [
        ("pip", "pip install 'npumake[ethos-u]'"),
        ("pip --python", f"pip --python {sys.prefix} install 'npumake[ethos-u]'"),
        ("uv", "uv pip install 'npumake[ethos-u]'"),
        ("pipx", "pipx inject npumake ethos-u-vela"),
        ("uv tool", "uv tool install --with ethos-u-vela npumake"),
    ],
)
def test_the_line_is_that_of_what_installed_npumake(by, line: str) -> None:
    assert install_line("ethos-u-vela", by) == line
