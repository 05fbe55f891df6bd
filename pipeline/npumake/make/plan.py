"""Plan: stages x variants x targets → nodes.

A stage fans out if it takes a target, and so does every stage behind it. Earlier stages run once
for all targets, and once for all variants that agree on them. Behind them each variant has its own
artifacts; a node with the key of an earlier one is its twin. A stage that joins runs once, last, on
its inputs of every variant and target.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import PurePosixPath
from typing import NamedTuple

from npumake import digest
from npumake.errors import Place, ProjectError
from npumake.make.node import Node, ProjectPlan, needed_by
from npumake.project.files import FileSource, sources
from npumake.project.reader import Project, ProjectReading
from npumake.project.sections import Sections
from npumake.stages import SCORES
from npumake.stages.parameters import scored_artifact
from npumake.stages.stage import Stage
from npumake.targets.target import Target

ReadTarget = Callable[[str], Target]
REFERENCE_ARTIFACT = "float"  # always scored: the reference for the others
# Conditions of stages that only some targets have.
STAGE_CONDITIONS: Mapping[str, Callable[[Sections, Target], bool]] = {
    "handover": lambda sections, _: sections.compile.vendor_tool,
    "listings": lambda sections, target: target.listings and not sections.compile.vendor_tool,
}
MAX_PREFIX_BYTES = 100  # a file name has 255 bytes, target and suffix included


class _Branch(NamedTuple):
    """One variant for one target, or for all targets: how names and paths are written.

    `sources` are the files of all sections: every node takes some of them.
    """

    project: Project
    target: str | None
    reading: ProjectReading
    document: Target | None
    sources: tuple[FileSource, ...]

    def name(self, short: str) -> str:
        group = self.project.name
        group += f"@{self.project.variant}" if self.project.variant else ""
        return f"{group}:{self.target}/{short}" if self.target else f"{group}:{short}"

    def path(self, stage: Stage) -> str:
        """`out/[@<variant>/]<stage>[.<target>]<suffix>`; the compiled file is named after the
        project."""
        stem, suffix = stage.name, stage.suffix
        if stage.name == "compiled":
            options = self.reading.sections.compile
            suffix = self.document.makes(options.vendor_tool) if self.document else suffix
            stem = options.prefix or self.project.name
            is_name = stem == PurePosixPath(stem).name and len(stem.encode()) <= MAX_PREFIX_BYTES
            if not is_name or stem.startswith("."):
                place = self.reading.places.get("compile.prefix")
                raise ProjectError(f"`{stem[:MAX_PREFIX_BYTES]}` is not a file name", place)
        folder = f"out/@{self.project.variant}" if self.project.variant else "out"
        fan = f".{self.target}" if self.target else ""
        return f"{folder}/{stem}{fan}{suffix}"


def planned(project: Project, stages: Mapping[str, Stage], read_target: ReadTarget) -> ProjectPlan:
    """Every node of `project` and its variants, each behind its inputs and its twin.

    Raises ProjectError for an unknown target, for no target, and for a target's overlay of a stage
    that all targets share.
    """
    nodes: list[Node] = []
    first: dict[str, Node] = {}
    read = cache(read_target)
    for variant in (project, *project.variants):
        for node in _nodes(variant, stages, read, first):
            nodes.append(node)
    for stage in stages.values():
        nodes += _joint(project, stage, nodes) if stage.joins else ()
    return ProjectPlan(project.name, tuple(nodes))


def _joint(project: Project, stage: Stage, nodes: Sequence[Node]) -> tuple[Node, ...]:
    """The node that joins every artifact of a stage, by the name of its build; empty without
    artifacts."""
    joined = [node for node in nodes if node.stage in stage.inputs]
    if not joined:
        return ()
    branch = _trunk(project)
    node = _node(branch, stage, {node.name.rpartition("/")[0]: node for node in joined})
    return (replace(node, traced=_before(node, nodes)) if "provenance" in stage.special else node,)


def _before(node: Node, nodes: Sequence[Node]) -> tuple[str, ...]:
    """The names of all direct and indirect inputs, in order."""
    sources = {*node.inputs.values()}
    for other in reversed(nodes):
        sources |= {*other.inputs.values()} if other.name in sources else set()
    return tuple(other.name for other in nodes if other.name in sources)


def _nodes(
    project: Project, stages: Mapping[str, Stage], read_target: ReadTarget, first: dict[str, Node]
) -> Iterator[Node]:
    """The nodes of one variant. `first` collects the first node of each identity."""
    shared = _shared(stages)
    trunk = _trunk(project)
    branches = [_branch(project, name, read_target, shared) for name in project.targets]
    if not branches:
        raise ProjectError("no target to build for", project.places.get("targets"))
    by_stage: dict[tuple[str | None, str], Node] = {}
    for stage in (stage for stage in stages.values() if not stage.joins):
        for branch in [trunk] if stage.name in shared else branches:
            homes = {name: None if name in shared else branch.target for name in stage.inputs}
            inputs = {n: by_stage[home, n] for n, home in homes.items() if (home, n) in by_stage}
            if not _is_planned(stage, branch, inputs):
                continue
            if "chain" in stage.special:
                inputs = {**_chain(inputs, by_stage), **inputs}
            node = _node(branch, stage, inputs)
            twin = first.setdefault(_identity(node, inputs), node)
            if branch is not trunk and twin is not node:
                node = replace(node, twin=twin.name)
            by_stage[branch.target, stage.name] = twin if branch is trunk else node
            if twin is node or branch is not trunk:
                yield node


def _chain(
    inputs: Mapping[str, Node], by_stage: Mapping[tuple[str | None, str], Node]
) -> dict[str, Node]:
    """The models behind the inputs, by stage: direct and indirect inputs."""
    by_name = {node.name: node for node in by_stage.values()}
    needed = needed_by(
        (node.name for node in inputs.values()),
        {name: node.inputs.values() for name, node in by_name.items()},
    )
    return {node.stage: node for name in needed if (node := by_name[name]).is_model}


def _is_planned(stage: Stage, branch: _Branch, inputs: Mapping[str, Node]) -> bool:
    """Whether the stage's inputs and sections exist and its condition holds."""
    sections, target = branch.reading.sections, branch.document
    absent = {name for name in stage.inputs if name not in inputs}
    absent |= {name for name in stage.sections if getattr(sections, name) is None}
    if absent - {*stage.optional}:
        return False
    if (
        target
        and stage.name in STAGE_CONDITIONS
        and not STAGE_CONDITIONS[stage.name](sections, target)
    ):
        return False
    if stage.name not in SCORES:
        return True
    artifacts = () if sections.evaluation is None else sections.evaluation.artifacts
    return scored_artifact(stage.name) in (REFERENCE_ARTIFACT, *artifacts)


def _shared(stages: Mapping[str, Stage]) -> Mapping[str, Stage]:
    """The stages that run once for all targets."""
    shared: dict[str, Stage] = {}
    for stage in stages.values():
        if "target" not in stage.special and all(name in shared for name in stage.inputs):
            shared[stage.name] = stage
    return shared


def _trunk(project: Project) -> _Branch:
    reading = ProjectReading(project.sections, project.places)
    return _Branch(project, None, reading, None, sources(project.sections))


def _branch(
    project: Project, name: str, read_target: ReadTarget, shared: Mapping[str, Stage]
) -> _Branch:
    reading = project.targets[name]
    for section in reading.own:
        readers = [stage.name for stage in shared.values() if section in stage.sections]
        if readers or section == "targets":
            message = f"`{section}` cannot differ by target"
            why = f": `{readers[0]}` is built once for all of them" if readers else ""
            hint = "write a variant with one target, under `variants:`"
            raise ProjectError(message + why, reading.places.get(section), hint)
    try:
        return _Branch(project, name, reading, read_target(name), sources(reading.sections))
    except ProjectError as error:
        error.where = error.where or _place(project, name)
        raise


def _place(project: Project, target: str) -> Place | None:
    index = list(project.targets).index(target)
    return project.places.get(f"targets.{index}")


def _node(branch: _Branch, stage: Stage, inputs: Mapping[str, Node]) -> Node:
    return Node(
        name=branch.name(stage.name),
        stage=stage.name,
        modules=stage.modules,
        summary=stage.summary,
        variant=branch.project.variant,
        target=branch.target,
        path=branch.path(stage),
        inputs={name: inputs[name].name for name in sorted(inputs)},  # as a stored plan has them
        params=_params(branch, stage),
        target_document=digest.plain(branch.document) if "target" in stage.special else None,
        sources=_sources(branch, stage) if "sources" in stage.special else (),
        places=_places(branch, stage),
    )


def _params(branch: _Branch, stage: Stage) -> dict[str, digest.Json]:
    """The sections of the stage. The prefix of a compiled file only affects its path."""
    sections = branch.reading.sections
    params = {name: digest.plain(getattr(sections, name)) for name in stage.sections}
    if "vendor_document" in stage.special:
        params["vendor_document"] = branch.project.vendor_document
    if "vendor_dialect" in stage.special:
        vendor = branch.project.vendor_document
        params["vendor_dialect"] = None if vendor is None else vendor["dialect"]
    params.get("compile", {}).pop("prefix", None)
    return params


def _sources(branch: _Branch, stage: Stage) -> tuple[FileSource, ...]:
    return tuple(source for source in branch.sources if source.keys[0] in stage.sections)


def _identity(node: Node, inputs: Mapping[str, Node]) -> str:
    """The part of a node's key that a plan knows: nodes of one identity have one key."""
    return digest.of_document(
        {
            "stage": node.stage,
            "params": node.params,
            "target": node.target_document,
            "inputs": {name: source.twin or source.name for name, source in inputs.items()},
        }
    )


def _places(branch: _Branch, stage: Stage) -> dict[str, str]:
    """`file:line:column` of every key of the stage's sections, relative to the project."""
    places = {}
    for route, place in branch.reading.places.items():
        if route.split(".")[0] in stage.sections:
            file = PurePosixPath(os.path.relpath(place.path, branch.project.directory))
            places[route] = f"{file}:{place.line}:{place.column}"
    return places
