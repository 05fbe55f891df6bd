"""The place in the YAML of an error that names a key."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path

from npumake.errors import PipelineError, Place
from npumake.make.missing import display_path
from npumake.project.unset import name_unset_variables


def place_error(
    error: PipelineError, route: str, places: Mapping[str, str], directory: Path
) -> None:
    """Gives the error the place of its key; `places` are those of a node, `file:line:column`."""
    place = places.get(_nearest_key(route, places), "project.yaml:0:0")
    file, line, column = place.rsplit(":", 2)
    error.where = Place(display_path(directory / file), int(line), int(column))
    name_unset_variables(error)


def _nearest_key(route: str, places: Mapping[str, str]) -> str:
    """The nearest key of the YAML: the route, one above it, or that of every input (`*`)."""
    every = [key for key in places if ".*" in key and fnmatchcase(route, key)]
    way = route
    while way and way not in places:
        way = way.rpartition(".")[0]
    return max(every, key=len) if every and "." not in way else way
