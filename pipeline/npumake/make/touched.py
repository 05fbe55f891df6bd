"""The projects that a change concerns, and why.

There are two criteria. The change contains a file of the project, possibly a removed one: its YAML,
a file of its keys, its lock file, npumake's own sources. Or the base has a lock file, and the key
of a node differs from the locked one: a library, a compiler or a variable of the environment
changed, without a change of any file.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from npumake.digest import of_document
from npumake.errors import PipelineError
from npumake.make.build import Build
from npumake.make.code import PACKAGE
from npumake.make.frozen import reasons_for
from npumake.make.lock import LOCK_FILE, Lock, locked_name
from npumake.make.missing import no_file
from npumake.make.node import Node
from npumake.project.files import FileSource, source_files, split_pattern

MAX_LINKS = 40  # as Linux allows
YAML = (".yaml", ".yml")


def reasons(
    build: Build, configuration: Iterable[Path], changes: frozenset[str], base: Lock | None
) -> Iterator[str]:
    """The reasons for a build of the project other than the base's: files first, then keys. Empty
    without reasons. `changes` are absolute paths, `configuration` the YAML files of the project."""
    try:
        yield from map(_path_text, sorted(_changed_files(build, configuration, changes)))
        if base is not None:
            yield from _changed_key(build, base)
    except PipelineError as error:  # it cannot be built: the build reports why
        yield error.what


def _path_text(path: str) -> str:
    suffix = "" if os.path.lexists(path) else " (removed)"
    return f"{os.path.relpath(path)}{suffix}"


# -- files -------------------------------------------------------------------------------------


def _changed_files(
    build: Build, configuration: Iterable[Path], changes: frozenset[str]
) -> set[str]:
    home = os.path.realpath(build.directory)
    package = f"{os.path.realpath(PACKAGE)}/"
    changed = {path for path in changes if path.startswith(package) or _is_own(path, home)}
    for file in configuration:
        changed |= changes & _ways(str(file))
    for source in dict.fromkeys(entry for node in build.plan.nodes for entry in node.sources):
        changed |= _of_source(build, source, changes)
    return changed


def _is_own(path: str, home: str) -> bool:
    """Whether it is a YAML file or the lock file of the project's folder, present or removed."""
    folder, name = os.path.split(path)
    return folder == home and (name == LOCK_FILE or name.endswith(YAML))


def _of_source(build: Build, source: FileSource, changes: frozenset[str]) -> set[str]:
    """The changed files that a key names: present ones, and removed ones below the folder of its
    pattern, with any name. Raises ProjectError if none is left."""
    files = source_files(build.directory, source)
    if not files:
        raise no_file(build.directory, source, build.vendor_dialect)
    root = str(split_pattern(build.directory, source.pattern)[0])
    below = f"{os.path.realpath(root)}/"
    removed = {path for path in changes if path.startswith(below) and not os.path.lexists(path)}
    return removed.union(*(changes & _ways(path) for path in (root, *(path for _, path in files))))


@cache
def _ways(path: str, hops: int = MAX_LINKS) -> frozenset[str]:
    """The paths by which git may report a change of a file: the file, the links to it, and the
    folders above it, one of which may be a submodule."""
    folder, name = os.path.split(os.path.normpath(path))
    if not name:
        return frozenset()
    home = os.path.realpath(folder)
    ways = _ways(folder, hops) | {os.path.join(home, name)}
    if hops and os.path.islink(path):
        ways |= _ways(os.path.join(home, os.readlink(path)), hops - 1)
    return ways


# -- keys --------------------------------------------------------------------------------------


def _changed_key(build: Build, base: Lock) -> Iterator[str]:
    """The first node whose key is not the locked one, after nodes with locked keys. A node that
    only one side has changes a file too."""
    for node in build.plan.nodes:
        locked = base.artifacts.get(locked_name(node))
        inputs = _locked_inputs(build, node, base)
        if node.joins or locked is None or inputs is None:
            continue
        document = build.document(node, inputs)
        if of_document(document) != locked.key:
            yield f"{node.name}: {reasons_for(build, node, locked, document)[0]}"
            return


def _locked_inputs(build: Build, node: Node, base: Lock) -> dict[str, str] | None:
    """The locked digests of the node's inputs by stage; None if one is not locked."""
    digests = {}
    for stage, name in node.inputs.items():
        locked = base.artifacts.get(locked_name(build.plan.node(name)))
        if locked is None:
            return None
        digests[stage] = locked.digest
    return digests
