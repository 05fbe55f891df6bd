"""What a command line names: a file, or a project with its variant, target or node.

    digits  digits@kl  digits:rdk-x5  digits@kl:rdk-x5/calibrated  projects/digits:rdk-x5

Every verb reads such names here. A folder in place of a project's name works from anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from npumake.cli.projects import NOWHERE, no_project, place, places, project_directories, selected
from npumake.errors import ProjectError, did_you_mean
from npumake.make.build import Build
from npumake.make.node import Node

PATH_LIKE = re.compile(r"/|\.[A-Za-z]\w*$")  # rare in the names of projects


class Selection(NamedTuple):
    """PROJECT[@VARIANT][:TARGET]; without a target, all of the variant's."""

    build: Build
    group: str
    target: str | None

    def nodes(self, stage: str) -> list[Node]:
        return [
            node
            for node in self.build.plan.nodes
            if (node.group, node.stage) == (self.group, stage)
            and self.target in (None, node.target)
        ]

    def only_node(self, stage: str) -> Node:
        """The stage's node of the target. Raises ProjectError if there are several targets."""
        nodes = self.nodes(stage)
        if len(nodes) != 1:
            names = [f"{self.group}:{node.target}" for node in nodes]
            raise ProjectError("which target?", hint=" or ".join(names))
        return nodes[0]

    @property
    def compiled_nodes(self) -> list[Node]:
        """Those of the target; of a whole project, with its variants."""
        is_whole = self.target is None and self.group == self.build.plan.project
        nodes = self.build.plan.nodes if is_whole else self.nodes("compiled")
        return [node for node in nodes if node.stage == "compiled"]

    @property
    def compiled(self) -> tuple[Build, Node]:
        """The node of the compiled file. Raises ProjectError if there are several targets."""
        return self.build, self.only_node("compiled")


def project_of(name: str) -> str:
    """`digits@p999:rdk-x5/calibrated` → `digits`."""
    return re.split("[:@]", name, maxsplit=1)[0]


def aliases(node: str) -> set[str]:
    """The names that select a node: its own, and those of its target, variant and project."""
    group = node.partition(":")[0]
    of_target = {node.rpartition("/")[0]} if "/" in node else set()
    return {node, group, project_of(node), *of_target}


def chosen_nodes(build: Build, names: Collection[str]) -> list[Node]:
    """The nodes of a project that names select, without names all. Raises ProjectError for a name
    that selects none."""
    node_aliases = {alias for node in build.plan.nodes for alias in aliases(node.name)}
    for name in names:
        if name not in node_aliases:
            is_group = ":" not in name
            near = {alias for alias in node_aliases if is_group <= (":" not in alias)}
            kind = "variant" if is_group else "node"
            raise ProjectError(f"no {kind} `{name}`", hint=did_you_mean(name, near))
    return [node for node in build.plan.nodes if not names or aliases(node.name) & set(names)]


class ChosenNodes(NamedTuple):
    """The nodes of a project that `names` select; without names, all."""

    build: Build
    names: list[str]
    nodes: list[Node]


def chosen(names: Sequence[str]) -> list[ChosenNodes]:
    """The projects that names select, with the selected nodes; without names, all projects here.
    Raises PipelineError."""
    entries = []
    for directory, called in places(names).items():
        for build in selected(directory, projects_of(called)):
            own = [name for name in called if project_of(name) == build.plan.project]
            entries.append(ChosenNodes(build, own, chosen_nodes(build, own)))
    return entries


def projects_of(names: Iterable[str]) -> list[str]:
    """The projects of these names, each once."""
    return list(dict.fromkeys(map(project_of, names)))


def whole_projects(names: Sequence[str], directory: Path) -> list[Build]:
    """The projects of one cache that names or folders select; without names, all in `directory`.
    Raises PipelineError."""
    at = places(names) if names else {directory: []}
    if len(at) > 1:
        raise ProjectError("the projects are in several workspaces", hint="run it in each of them")
    ((top, called),) = at.items()
    return selected(top, called)


def selection(name: str) -> Selection:
    """Raises ProjectError for an unknown project, variant or target."""
    directory, name = place(name)
    group, _, target = name.partition(":")
    (build,) = selected(directory, [project_of(name)])
    groups = {node.group for node in build.plan.nodes} | {build.plan.project}
    if group not in groups:
        raise ProjectError(f"no variant `{group}`", hint=did_you_mean(group, groups))
    targets = {str(n.target) for n in build.plan.nodes if n.group == group and n.target}
    if "/" in target:
        by_name = {node.name: node for node in build.plan.nodes}
        if name not in by_name:
            raise ProjectError(f"no node `{name}`", hint=did_you_mean(name, by_name))
        target = str(by_name[name].target)
    if target and target not in targets:
        hint = did_you_mean(target, targets)
        raise ProjectError(f"`{group}` has no target `{target}`", hint=hint)
    return Selection(build, group, target or None)


def file_or_selection(name: str) -> Path | Selection:
    """A file's path, also that of a node's artifact, or the project that the name selects. A path
    that leads nowhere is returned: the verb reports it. Raises PipelineError."""
    path = Path(name)
    if path.is_file():
        return path
    directory, called = place(name)
    projects = [folder.name for folder in project_directories(directory)]
    if project_of(called) in projects:
        return _artifact(directory, called) or selection(name)
    if path.is_dir():
        raise no_project(path)
    if PATH_LIKE.search(name) or path.exists():
        return path
    hint = did_you_mean(name, projects) if projects else NOWHERE
    raise ProjectError(f"no file and no project `{name}`", hint=hint)


def artifact_path(name: str) -> Path:
    """A file, a node's artifact, or the compiled file of PROJECT[@VARIANT][:TARGET]. Raises
    PipelineError, also for what has not been built."""
    named = file_or_selection(name)
    return named if isinstance(named, Path) else built_artifact(*named.compiled, name)


def artifact_node(file: Path) -> tuple[Build, Node] | None:
    """The project and the node of an artifact; None for another file. Raises PipelineError."""
    directory, called = place(str(file))
    if called == str(file):
        return None
    (build,) = selected(directory, [project_of(called)])
    return build, build.plan.node(called)


def _artifact(directory: Path, called: str) -> Path | None:
    """The artifact of a node; None for another name. Raises PipelineError."""
    (build,) = selected(directory, [project_of(called)])
    by_name = {node.name: node for node in build.plan.nodes}
    return built_artifact(build, by_name[called], called) if called in by_name else None


def built_artifact(build: Build, node: Node, name: str) -> Path:
    """Raises ProjectError for an artifact that is not there."""
    if not build.artifact(node).is_file():
        raise ProjectError(f"`{name}` has not been built", hint=f"npumake build {name}")
    return build.artifact(node)
