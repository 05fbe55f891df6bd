"""The content of an attestation: the inputs of a compiled file, and its figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from npumake.debug.compared import Comparison
from npumake.digest import Json, of_document
from npumake.errors import ProjectError
from npumake.evaluate.figures import EvaluationResult
from npumake.make.build import Build
from npumake.make.node import Node, needed_by
from npumake.make.stamp import Stamp

COMPILED = "compiled"


class Dependency(NamedTuple):
    """A file that the project names, by the route of its key."""

    route: str
    name: str
    digest: str


class MeasuredMetric(NamedTuple):
    """A figure of an artifact, measured over `of`."""

    name: str
    artifact: str
    value: float
    of: str


@dataclass(frozen=True)
class AttestedBuild:
    """A compiled file with the nodes that it was built from, in order; all are current."""

    build: Build
    node: Node
    nodes: tuple[Node, ...]
    stamps: Mapping[str, Stamp]

    @property
    def file(self) -> Path:
        return self.build.artifact(self.node)

    @property
    def digest(self) -> str:
        return self.stamps[self.node.name].digest

    @cached_property
    def sections(self) -> dict[str, Json]:
        """The YAML that the nodes read, by section, without paths: files count by their content.
        Later nodes have the overlay of a target."""
        sections: dict[str, Json] = {}
        for node in self.nodes:
            sections |= self.stamps[node.name].document["params"]
        return {name: sections[name] for name in sorted(sections)}

    @cached_property
    def dependencies(self) -> tuple[Dependency, ...]:
        """Every file, each once."""
        files = {
            Dependency(route, name, content)
            for node in self.nodes
            for route, named in self.stamps[node.name].document["sources"].items()
            for name, content in named.items()
        }
        return tuple(sorted(files))

    @cached_property
    def tools(self) -> Mapping[str, str]:
        """The versions of the programs and libraries, by name."""
        tools: dict[str, str] = {}
        for node in self.nodes:
            tools |= self.stamps[node.name].document["tools"]
        return dict(sorted(tools.items()))

    def key(self, node: Node) -> str:
        return of_document(self.stamps[node.name].document)

    @cached_property
    def metrics(self) -> tuple[MeasuredMetric, ...]:
        """Scores and cosines, if the build has measured them."""
        return tuple((*self._scores(), *self._cosines()))

    def _scores(self) -> Iterator[MeasuredMetric]:
        if (file := self._beside("evaluation")) is not None:
            for row in EvaluationResult.load(file).rows:
                for name, value in row.by_name.items():
                    yield MeasuredMetric(name, row.artifact, value, f"{row.pictures} files")

    def _cosines(self) -> Iterator[MeasuredMetric]:
        if (file := self._beside("comparison")) is not None:
            comparison = Comparison.load(file)
            for output in comparison.outputs:
                over = f"output {output.name}, {comparison.samples} samples"
                yield MeasuredMetric("cosine", "quantized", output.cosine, over)

    def _beside(self, stage: str) -> Path | None:
        """The artifact of a later stage of the same target; None if it is not current."""
        name = f"{self.node.name.rpartition('/')[0]}/{stage}"
        node = self.build.plan.by_name.get(name)
        return (
            None if node is None or not self.build.is_current(node) else self.build.artifact(node)
        )


def attested(build: Build, node: Node) -> AttestedBuild:
    """The build of a compiled `node`. Raises ProjectError if it is not current."""
    needed = needed_by(
        [node.name], {entry.name: entry.inputs.values() for entry in build.plan.nodes}
    )
    nodes = tuple(entry for entry in build.plan.nodes if entry.name in needed)
    stamps = {}
    for entry in nodes:
        stamp = build.stamp(entry)
        if stamp is None or not build.is_current(entry):
            raise ProjectError(f"`{entry.name}` is not current", hint=f"npumake build {node.name}")
        stamps[entry.name] = stamp
    return AttestedBuild(build, node, nodes, stamps)


def compiled_nodes(build: Build) -> tuple[Node, ...]:
    return tuple(node for node in build.plan.nodes if node.stage == COMPILED)
