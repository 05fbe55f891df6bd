"""Plan: stages x targets → nodes. A stage fans out where it asks for a target, and so does every
stage behind it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath

from pipeline import digest
from pipeline.errors import ProjectError
from pipeline.make.node import Node, Plan
from pipeline.project.files import sources
from pipeline.project.reader import Project
from pipeline.stages.stage import Stage
from pipeline.targets.target import Target

ReadTarget = Callable[[str], Target]


def planned(project: Project, stages: Mapping[str, Stage], read_target: ReadTarget) -> Plan:
    """Every node of `project`. Raises ProjectError for a target nobody knows, or none at all."""
    names = project.sections.targets
    if not names:
        raise ProjectError("no target to build for", project.places.get("targets"))
    targets = {name: _target(project, index, read_target) for index, name in enumerate(names)}
    nodes: list[Node] = []
    fans_out: dict[str, bool] = {}
    for stage in stages.values():
        fans_out[stage.name] = stage.asks_target or any(fans_out[name] for name in stage.inputs)
        for target in targets if fans_out[stage.name] else (None,):
            document = targets[target] if target and stage.asks_target else None
            nodes.append(_node(project, stage, target, document, fans_out))
    return Plan(project.name, tuple(nodes))


def _target(project: Project, index: int, read_target: ReadTarget) -> Target:
    name = project.sections.targets[index]
    place = project.places.get(f"targets.{index}")
    if name in project.sections.targets[:index]:
        raise ProjectError(f"target `{name}` is listed twice", place)
    try:
        return read_target(name)
    except ProjectError as error:
        error.where = error.where or place
        raise


def _node(
    project: Project,
    stage: Stage,
    target: str | None,
    document: Target | None,
    fans_out: Mapping[str, bool],
) -> Node:
    def name_of(short: str) -> str:
        fan = target if fans_out[short] else None
        return f"{project.name}:{fan}/{short}" if fan else f"{project.name}:{short}"

    params = {name: digest.plain(getattr(project.sections, name)) for name in stage.sections}
    named = sources(project.sections)
    return Node(
        name_of(stage.name),
        stage.name,
        stage.module,
        stage.summary,
        target,
        _path(project, stage, target),
        {name: name_of(name) for name in stage.inputs},
        params,
        digest.plain(document),
        tuple(s for s in named if stage.reads_sources and s.keys[0] in stage.sections),
        _places(project, stage),
    )


def _path(project: Project, stage: Stage, target: str | None) -> str:
    """`out/<stage>[.<target>]<suffix>`; what leaves the house is called after the project."""
    suffix = stage.artifact.suffix
    stem = stage.name
    if stage.name == "compiled":
        stem = project.sections.compile.prefix or project.name
        if stem != PurePosixPath(stem).name or stem.startswith("."):
            raise ProjectError(f"`{stem}` is no file name", project.places.get("compile.prefix"))
    return f"out/{stem}.{target}{suffix}" if target else f"out/{stem}{suffix}"


def _places(project: Project, stage: Stage) -> dict[str, str]:
    """`file:line:column` of every key of the stage's sections, the file seen from the project."""
    found = {}
    for route, place in project.places.items():
        if route.split(".")[0] in stage.sections:
            file = PurePosixPath(os.path.relpath(place.path, project.directory))
            found[route] = f"{file}:{place.line}:{place.column}"
    return found
