"""ReportedNode: the result of one node in a run of `npumake ci`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from npumake.cli.projects import NamedBuild
from npumake.cli.reporter import NodeOutcome
from npumake.errors import PipelineError
from npumake.make.build import Build

NOT_RUN = "not run"
CURRENT, RECALLED, BUILT, FAILED = "current", "recalled", "made", "failed"
HITS = (CURRENT, RECALLED)
PROJECT = "project"  # the stage of a project that cannot be planned


@dataclass(frozen=True)
class ReportedNode:
    """`status` is current, recalled, made, failed or not run. A failure without an error is a bug
    of npumake. `group` is the project, or a variant of it."""

    name: str
    group: str
    target: str | None
    stage: str
    status: str
    seconds: float = 0.0
    error: PipelineError | None = None


def results_of(
    entries: Iterable[NamedBuild], outcomes: Sequence[NodeOutcome]
) -> Iterator[ReportedNode]:
    """One result per node in the order of the plans, and one per project that has no plan."""
    by_name = {outcome.node: outcome for outcome in outcomes}
    for project, build in entries:
        if not isinstance(build, Build):
            yield ReportedNode(project, project, None, PROJECT, FAILED, error=build)
            continue
        for node in build.plan.nodes:
            status, seconds, error = NOT_RUN, 0.0, None
            if outcome := by_name.get(node.name):
                status, seconds, error = outcome.status, outcome.seconds, outcome.error
            yield ReportedNode(
                node.name, node.group, node.target, node.stage, status, seconds, error
            )
