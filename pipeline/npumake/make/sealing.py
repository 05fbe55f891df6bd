"""Writes the seals of npumake.make.seals, after a build that saw projects current as a whole.

A seal covers everything that `Build.is_current` and the plan read. Only files of this interpreter
can be sealed, not tools in another interpreter or on PATH, processors, or plugins. All sealed files
must be older than the process: then the stamps are those of the files as read.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from npumake.cache.sealed import sealed
from npumake.cache.signature import is_settled
from npumake.compilers.adapters.adapter import ADAPTERS
from npumake.digest import Json
from npumake.errors import PipelineError
from npumake.make.build import STAMPS, Build
from npumake.make.code import PACKAGE
from npumake.make.memory import BuildMemory
from npumake.make.node import Node
from npumake.make.programs import PROGRAMS_BY_STAGE
from npumake.make.seals import BETWEEN, Seals, identity, status
from npumake.project.files import folders_listed, source_files, variables_of
from npumake.targets import OWN_TARGETS

METADATA = (".dist-info", ".egg-info")  # of installed packages: their versions are in keys
METADATA_FILES = ("METADATA", "PKG-INFO", "entry_points.txt")
MAX_FILES = 16  # of seals in a cache
CLOSURES = "closures/"  # in the cache
ELSEWHERE = frozenset(ADAPTERS) | {"iree"}  # by Target.backend: an interpreter, a processor


def seal(builds: Sequence[Build], memory: BuildMemory, seals: Seals) -> None:
    """Seals builds whose nodes were all current, beside those whose seal held when the process
    began."""
    entries = dict(seals.entries)
    for build in builds:
        if (entry := _sealed_build(build, seals)) is not None:
            entries[str(build.directory)] = entry
    if not entries or identity(seals.top, seals.root) != seals.identity:
        return
    old, root = seals.content(), str(seals.root)
    closures = {*_closures(builds)}
    if old is not None and seals.entries:  # theirs hold as well
        names = old["program"]["paths"].split(BETWEEN)
        closures |= {f"{root}/{name}" for name in names if name.startswith(CLOSURES)}
    program = _entry((*_program(), *closures), (), root, seals)
    content = {"program": program, "projects": entries}
    if program is not None and content != old:
        memory.keep(seals.file, sealed(seals.identity, content))
        _remove_oldest(seals.file.parent)


def _remove_oldest(folder: Path) -> None:
    """Leaves the newest seals: each way to start a build, and each folder, has its own."""
    with suppress(OSError):  # of a read-only cache, or removed by another build
        files = sorted(folder.glob("*.json"), key=lambda file: file.stat().st_mtime_ns)
        for file in files[:-MAX_FILES]:
            file.unlink()


def _sealed_build(build: Build, seals: Seals) -> Json | None:
    """The entry of a project; None if it cannot be sealed."""
    nodes, base = build.plan.nodes, str(build.directory)
    if not all(_is_sealable(build, node) for node in nodes):
        return None
    inputs = build.memory.read[build.directory]
    paths = {os.path.join(base, name) for name in inputs.files}
    try:
        paths |= {*_looked_at(build)}
    except (PipelineError, OSError):
        return None
    patterns = {name for node in nodes for source in node.sources for name in variables_of(source)}
    entry = _entry(paths, patterns | {*inputs.variables}, base, seals)
    rows = [[n.name, n.stage, n.summary, n.path, dict(n.inputs), n.twin] for n in nodes]
    return None if entry is None else {**entry, "nodes": rows}


def _is_sealable(build: Build, node: Node) -> bool:
    """Whether its key depends on no other interpreter, program or plugin."""
    stamp = build.stamp(node)
    if stamp is None or any(name.startswith("plugin ") for name in stamp.document["tools"]):
        return False
    if node.target is not None and node.target not in OWN_TARGETS:
        return False
    if node.stage not in PROGRAMS_BY_STAGE:
        return True
    target = node.target_document
    is_elsewhere = target["backend"] in ELSEWHERE or bool(target.get("iree"))
    return "handover" not in node.inputs and not is_elsewhere


def _looked_at(build: Build) -> Iterator[str]:
    """Every file and folder that decides whether the project's nodes are current."""
    base = str(build.directory)
    yield base
    yield from (entry.path for entry in os.scandir(base) if entry.name.endswith((".yaml", ".yml")))
    for folder, _, names in os.walk(f"{base}/out"):
        yield folder
        is_ours = folder.startswith(f"{base}/{STAMPS}")
        yield from (f"{folder}/{name}" for name in names if is_ours)
    for node in build.plan.nodes:
        yield str(build.artifact(node))
    for source in {source for node in build.plan.nodes for source in node.sources}:
        yield from folders_listed(build.directory, source)
        for _, path in source_files(build.directory, source):
            yield path
            yield from _folders_above(path, base)


def _closures(builds: Iterable[Build]) -> Iterator[str]:
    """Their stored closures, which every build restores if they are lost."""
    for build in builds:
        for node in build.plan.nodes:
            if (stamp := build.stamp(node)) is not None:
                yield f"{build.memory.root.absolute()}/{CLOSURES}{stamp.document['code']}.json"


def _folders_above(path: str, base: str) -> Iterator[str]:
    """Its folder, and those between it and the project: a link may take the place of one."""
    folder = os.path.dirname(path)
    yield folder
    while folder.startswith(f"{base}/"):
        yield (folder := os.path.dirname(folder))


def _program() -> Iterator[str]:
    """This whole package, and the metadata of installed packages."""
    for folder, folders, names in os.walk(PACKAGE):
        folders[:] = [name for name in folders if name != "__pycache__"]
        yield folder
        yield from (f"{folder}/{name}" for name in names)
    for place in sys.path:
        existing = Path(os.path.abspath(place))
        while not existing.exists():
            existing = existing.parent  # where it would be built
        yield str(existing)
        if os.path.isdir(place):
            yield from _metadata(place)


def _metadata(place: str) -> Iterator[str]:
    for entry in os.scandir(place):
        if entry.name.endswith(METADATA):
            yield entry.path
            files = (f"{entry.path}/{name}" for name in METADATA_FILES)
            yield from filter(os.path.exists, files)


def _entry(paths: Iterable[str], variables: Iterable[str], base: str, seals: Seals) -> Json | None:
    """The sealed entry of these paths; None if one is too young, absent or cannot be named."""
    prefix = f"{base}/"
    names = sorted({path.removeprefix(prefix) for path in paths})
    entry = {"paths": BETWEEN.join(names), "variables": sorted(variables)}
    sealed_status = status(entry, base, lambda ctime_ns: is_settled(ctime_ns, seals.since_ns))
    return None if sealed_status is None else {**entry, "status": sealed_status}
