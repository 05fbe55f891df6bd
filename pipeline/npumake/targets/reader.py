"""A chip's file, read and checked: `read_target("rdk-x5")`."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from npumake.errors import ProjectError, did_you_mean
from npumake.project.check import check
from npumake.project.document import read_document
from npumake.project.reader import built
from npumake.project.schema import schema_of
from npumake.targets import TARGETS
from npumake.targets.target import Target


def target_names() -> tuple[str, ...]:
    return tuple(sorted(entry.rpartition("/")[2] for entry in TARGETS))


def target_file(name: str) -> Path:
    """The file of the chip called `name`. Raises ProjectError for one nobody knows."""
    for entry in TARGETS:
        if entry.rpartition("/")[2] == name:
            return Path(__file__).parent / f"{entry}.yaml"
    raise ProjectError(f"unknown target `{name}`", hint=did_you_mean(name, target_names()))


@cache
def read_target(name: str) -> Target:
    """Once in a process: it is part of our code.

    Raises ProjectError for an unknown name, or a file that does not fit the schema.
    """
    document = read_document(target_file(name))
    check(document, schema_of(Target))
    return built(Target, document.data)
