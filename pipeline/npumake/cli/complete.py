"""Answers a shell that completes a command line (npumake completion).

Only the modules of the verb in that line are imported. Errors of projects are no completion: the
command itself tells them.
"""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path

from npumake.cli.completion import library
from npumake.cli.projects import read_builds
from npumake.cli.verb import parser_of
from npumake.make.build import Build
from npumake.make.memory import BuildMemory, cache_directory
from npumake.make.places import project_directories

REQUEST = "_ARGCOMPLETE"  # the variable by which a shell asks
MAX_CANDIDATES = 2000


def answer(verbs: Mapping[str, str], aliases: Mapping[str, str]) -> None:
    """Writes the completions and ends the process. Raises ProjectError without the library."""
    table = {**verbs, **aliases}
    verb = _verb(os.environ.get("COMP_LINE", ""), os.environ.get("COMP_POINT", ""))
    module = import_module(f"{__package__}.{table[verb]}") if verb in table else None
    parser = parser_of({verb: module} if module else dict.fromkeys(verbs))
    _add_completers(parser)
    library().autocomplete(parser, always_complete_options=False, default_completer=_no_candidates)


def _verb(line: str, point: str) -> str:
    """The verb that stands before the cursor, complete."""
    before = line[: int(point)] if point.isdecimal() else line
    try:
        words = shlex.split(before)
    except ValueError:  # an open quote
        words = before.split()
    is_open = not before.endswith((" ", "\t"))
    complete = words[1 : -1 if is_open else None]
    return complete[0] if complete else ""


def _add_completers(parser: argparse.ArgumentParser) -> None:
    """By metavar: it names the kind of a value in every verb alike."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                _add_completers(inner)
        elif (completer := _completer(action)) is not None:
            action.completer = completer  # type: ignore[attr-defined]


def _completer(action: argparse.Action) -> Callable[..., object] | None:
    if isinstance(action.metavar, str) and action.metavar in BY_METAVAR:
        return BY_METAVAR[action.metavar]
    if action.choices is None and (action.type is Path or action.metavar in FILES):
        return _files
    return None


def _no_candidates(**_: object) -> list[str]:
    return []


def _files(prefix: str, **rest: object) -> list[str]:
    return [*library().completers.FilesCompleter()(prefix=prefix, **rest)]


def _projects(prefix: str, **_: object) -> list[str]:
    """Projects; their variants once an `@` is typed, and nodes once a `:` is."""
    names = [directory.name for directory in project_directories(Path.cwd())]
    if "@" not in prefix and ":" not in prefix:
        return [*_starting(prefix, names), *_folders(prefix)]
    groups = (node.group for build in _builds() for node in build.plan.nodes)
    return [*_starting(prefix, groups), *(_nodes(prefix) if ":" in prefix else ())]


def _folders(prefix: str) -> Iterator[str]:
    """Folders of projects, by their paths."""
    if "/" in prefix:
        yield from (name for name in _files(prefix) if name.endswith("/"))


def _nodes(prefix: str, **_: object) -> list[str]:
    names = (node.name for build in _builds() for node in build.plan.nodes)
    return _starting(prefix, names)


def _targets_of_builds(prefix: str, **_: object) -> list[str]:
    """`digits@kl:rdk-x5`, of every variant and target."""
    names = (
        f"{node.group}:{node.target}"
        for build in _builds()
        for node in build.plan.nodes
        if node.target
    )
    return _starting(prefix, names)


def _chips(prefix: str, **_: object) -> list[str]:
    from npumake.targets.reader import known_targets

    return _starting(prefix, known_targets())


def _artifacts(prefix: str, **_: object) -> list[str]:
    return [*_nodes(prefix), *_files(prefix)]


def _starting(prefix: str, names: object) -> list[str]:
    matching = dict.fromkeys(name for name in names if name.startswith(prefix))  # type: ignore
    return [*matching][:MAX_CANDIDATES]


def _builds() -> Iterator[Build]:
    """The projects here that can be planned. Nothing is written to the cache."""
    top = Path.cwd()
    memory = BuildMemory(cache_directory(top))
    for _, build in read_builds(project_directories(top), memory):
        if isinstance(build, Build):
            yield build


FILES = {"FILE", "FOLDER", "DIR", "YAML", "ONNX", "ZIP", "[NAME=]FILE", "CALIBRATION_DATA"}
BY_METAVAR: Mapping[str, Callable[..., object]] = {
    "PROJECT": _projects,
    "NODE": _nodes,
    "PROJECT[@VARIANT][:TARGET]": _targets_of_builds,
    "CHIP": _chips,
    "ARTIFACT": _artifacts,
    "MODEL": _artifacts,
    "HYBRID": _artifacts,
    "A": _artifacts,
    "B": _artifacts,
}
