"""Rebuild: a compiled file built again from its statement, in an empty folder without a cache.

First the project is compared with the statement: the YAML sections, the target and every file. Then
each node is built, and its artifact compared with the digest of the statement.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from npumake.digest import Json
from npumake.errors import GateError, PipelineError
from npumake.make.build import Build
from npumake.make.maker import make
from npumake.make.memory import BuildMemory
from npumake.make.node import Node, NodeKey, needed_by
from npumake.make.stamp import Stamp
from npumake.make.statement import Statement
from npumake.make.why import differences
from npumake.report.first_difference import first_difference

MAX_LINES = 8  # of differences in an error
Documents = Sequence[tuple[Node, NodeKey]]


@dataclass(frozen=True)
class Rebuild(Build):
    """A build of the same project with artifacts in another folder."""

    outputs: Path = Path()

    def artifact(self, node: Node) -> Path:
        return self.outputs / node.path

    def intact(self, node: Node, stamp: Stamp) -> bool:
        return bool(self.memory.files.of(self.artifact(node)) == stamp.digest)

    def _stamp_file(self, node: Node) -> str:
        return f"{self.outputs}/stamps/{node.short.replace('/', '.')}.json"


class Difference(NamedTuple):
    """The first node whose artifact differs; `tensor` is empty if the original artifact is not here
    to compare with."""

    node: str
    tensor: str


def needed_nodes(build: Build, node: Node) -> list[Node]:
    names = needed_by(
        [node.name], {planned.name: planned.inputs.values() for planned in build.plan.nodes}
    )
    return [planned for planned in build.plan.nodes if planned.name in names]


def hold_project(build: Build, node: Node, statement: Statement) -> None:
    """Raises GateError if the project differs from the statement."""
    documents = [
        (needed_node, build.document(needed_node, {})) for needed_node in needed_nodes(build, node)
    ]
    lines = [*_section_lines(documents, node, statement), *_file_lines(documents, statement)]
    if lines:
        rest = [f"and {len(lines) - MAX_LINES} more"] if len(lines) > MAX_LINES else []
        message = "the project differs from the statement"
        raise GateError(message, str(build.directory), "\n".join([*lines[:MAX_LINES], *rest]))


def _section_lines(documents: Documents, node: Node, statement: Statement) -> Iterator[str]:
    sections: dict[str, Json] = {}
    places: dict[str, str] = {}
    for entry, document in documents:
        sections |= document["params"]
        places |= entry.places
    before = {"params": dict(statement.sections), "target": statement.target_document}
    after = {"params": sections, "target": node.target_document}
    yield from differences(before, after, places, lambda _: None)


def _file_lines(documents: Documents, statement: Statement) -> Iterator[str]:
    before = {(file.route, file.name): file.digest for file in statement.files}
    after = {
        (route, name): content
        for _, document in documents
        for route, files in document["sources"].items()
        for name, content in files.items()
    }
    for key in sorted({*before, *after}):
        if before.get(key) != after.get(key):
            how = "changed" if key in before and key in after else "added"
            yield f"{key[0]} {key[1]}: {how if key in after else 'removed'}"


def tool_notes(build: Build, node: Node, statement: Statement) -> list[str]:
    """Versions and code that differ from the statement: they may explain a difference."""
    notes = []
    tools: dict[str, str] = {}
    for needed_node in needed_nodes(build, node):
        closure = build.memory.code.closure(*needed_node.modules)
        tools |= closure.tools
        if statement.code.get(needed_node.short) not in (None, closure.digest):
            notes.append(f"the code of {needed_node.stage} differs")
    for name, version in sorted(tools.items()):
        if statement.tools.get(name, version) != version:
            notes.append(f"{name} {statement.tools[name]} → {version}")
    return list(dict.fromkeys(notes))


def rebuilt(
    build: Build, node: Node, statement: Statement, file: Path, folder: Path
) -> Difference | None:
    """Builds `node` again below `folder`, and returns the first difference to the statement and the
    compiled `file`; None if the compiled file is equal to the byte."""
    memory = BuildMemory(folder / "cache")
    again = Rebuild(build.directory, build.plan, memory, outputs=folder)
    first: Difference | None = None
    for needed_node in needed_nodes(build, node):
        make(again, needed_node)
        digest = memory.files.of(again.artifact(needed_node))
        expected = (
            statement.digest if needed_node is node else statement.artifacts.get(needed_node.short)
        )
        if digest == expected:
            continue
        original = file if needed_node is node else _original(build, needed_node, expected, folder)
        tensor = first_difference(original, again.artifact(needed_node)) if original else ""
        if first is None:
            first = Difference(needed_node.short, tensor)
        elif not first.tensor:
            first = Difference(first.node, f"{needed_node.short}: {tensor}" if tensor else "")
        if needed_node is node:
            return first
    return None


def _original(build: Build, node: Node, digest: str | None, folder: Path) -> Path | None:
    """The artifact of the statement, from the project's own folder or its cache."""
    file = build.artifact(node)
    if digest is None:
        return None
    try:
        if build.memory.files.of(file) == digest:
            return file
        copy = folder / "originals" / file.name
        return copy if build.memory.near.fetch(digest, copy) else None
    except (FileNotFoundError, PipelineError):
        return None
