"""Nodes as doit tasks. doit orders, selects and parallelises; the store remembers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from doit.cmd_base import ModuleTaskLoader
from doit.doit_cmd import DoitMain
from doit.exceptions import TaskFailed

from pipeline.errors import PipelineError
from pipeline.make.build import Build
from pipeline.make.node import Node

Make = Callable[[Build, Node], Any]  # gives how it was made, in how many seconds, what was not kept


# They take longest and make nothing: they wait until all there is to have is made.
TELLS = ("comparison", "listings", "findings", "report", "gates")
STOPS, TOLD = "gates", "report"  # what may stop the build waits for the page that tells why


class Unsent(dict[str, Any]):
    """What stays in its process: sent to another, it is empty there.

    doit sends a finished task back while the next one runs. A Build remembers what it has read, and
    must not be read out meanwhile: the sending would fail unseen, and doit wait for ever.
    """

    def __reduce__(self) -> tuple[type[dict[str, Any]], tuple[()]]:
        return dict, ()


class Refused(TaskFailed):  # type: ignore[misc]  # doit is not typed
    """A user's mistake: what failed is data for the reporter, not a traceback."""

    def __init__(self, error: PipelineError) -> None:
        super().__init__(str(error), report=True)
        self.error = error


def tasks(build: Build, make: Make) -> Iterator[dict[str, Any]]:
    """One task per node, below a group task called like its variant; the project's has them all.
    Those that only tell how close the others are come last."""
    pages = [node.name for node in build.plan.nodes if node.stage == TOLD]
    for node in build.plan.nodes:
        told = pages if node.stage == STOPS else []
        yield {
            "basename": node.group,
            "name": node.short,
            "doc": node.summary,
            "actions": [(_act, [build, node, make])],
            "task_dep": [*node.inputs.values(), *([node.twin] if node.twin else []), *told],
            "uptodate": [(_is_current, [build, node])],
            "targets": [str(build.artifact(node))],
            "clean": True,
            "meta": Unsent(node=node, build=build),
        }
    ordered = sorted(
        build.plan.nodes, key=lambda node: TELLS.index(node.stage) if node.stage in TELLS else -1
    )
    groups: dict[str, list[str]] = {}
    for node in build.plan.nodes:
        groups.setdefault(node.group, [])
    for node in ordered:
        groups[node.group].append(node.name)
    project, *variants = groups
    groups[project] = [*(node.name for node in ordered), *variants]
    for group, members in groups.items():
        yield {"basename": group, "name": None, "doc": f"build {group}", "task_dep": members}


def failing_task(project: str, error: PipelineError) -> dict[str, Any]:
    """A project that cannot be planned is a task that says why; the others can be built."""
    return {"basename": project, "doc": str(error), "actions": [(_refuse, [error])]}


def _act(build: Build, node: Node, make: Make) -> Any:
    try:
        how, seconds, unstored = make(build, node)
    except PipelineError as error:
        return Refused(error)
    return {"how": how, "seconds": seconds, "unstored": unstored}


def _refuse(error: PipelineError) -> Refused:
    return Refused(error)


def _is_current(build: Build, node: Node) -> bool:
    return build.is_current(node)


def run_doit(members: dict[str, Any], arguments: list[str]) -> int:
    """`doit run` over the members of a dodo file, in this process; doit's exit code."""
    return int(DoitMain(ModuleTaskLoader(members)).run(["run", *arguments]))
