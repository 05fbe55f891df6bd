"""Malformed YAML and data: each is one clear error, quickly, in little memory, and touches nothing.

A row: its name, how the file is made, the command, the exit code, words of the one error.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from malformed.runner import Case, Server, check

PLAN = ("list",)
FEED = ("build", "digits:samples")


def yaml(text: str) -> Callable[[Path], object]:
    return lambda project: (project / "project.yaml").write_text(text)


YAML = (Case("empty", yaml(""), PLAN, 2, ("missing key `model`",)),)

DATA = (
    Case(
        "npy cut off",
        lambda project: (project / "samples/0003.npy").write_bytes(b"\x93NUMPY\x01\x00"),
        FEED,
        2,
        ("not a .npy file of numbers", "0003.npy"),
    ),
)


@pytest.mark.parametrize("case", YAML, ids=lambda case: case.name)
def test_malformed_yaml_is_one_error(case: Case, server: Server, tmp_path: Path) -> None:
    check(case, server, tmp_path / "w")


@pytest.mark.parametrize("case", DATA, ids=lambda case: case.name)
def test_malformed_data_is_one_error(case: Case, server: Server, tmp_path: Path) -> None:
    check(case, server, tmp_path / "w")
