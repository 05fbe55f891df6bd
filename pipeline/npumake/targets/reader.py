"""A chip's file, read and checked: `read_target("rdk-x5")`."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from npumake import plugins
from npumake.errors import ProjectError, did_you_mean
from npumake.project.check import check
from npumake.project.document import read_document
from npumake.project.reader import built
from npumake.project.schema import schema_of
from npumake.targets import OWN_TARGETS, TARGETS
from npumake.targets.target import Target


def target_names() -> tuple[str, ...]:
    """The names of our own chips, sorted."""
    return tuple(sorted(OWN_TARGETS))


def known_targets() -> tuple[str, ...]:
    """Our own chips and those that installed packages add, sorted. Reads their metadata."""
    return tuple(sorted({*target_names(), *plugins.plugin_names(plugins.TARGETS)}))


def target_file(name: str) -> Path:
    """The file of the chip called `name`. Raises ProjectError for an unknown name."""
    for entry in TARGETS:
        if entry.rpartition("/")[2] == name:
            return Path(__file__).parent / f"{entry}.yaml"
    if plugin := plugins.plugin(plugins.TARGETS, name):
        return plugin.data_file
    raise ProjectError(f"unknown target `{name}`", hint=did_you_mean(name, known_targets()))


@cache
def read_target(name: str) -> Target:
    """The target, read once per process: its file is part of the code.

    Raises ProjectError for an unknown name, or a file that does not fit the schema.
    """
    document = read_document(target_file(name))
    check(document, schema_of(Target))
    if document.data["name"] != name:
        message = f"the file of the target `{name}` has another name"
        raise ProjectError(message, document.places["name",].value, f"write  name: {name}")
    return built(Target, document.data)
