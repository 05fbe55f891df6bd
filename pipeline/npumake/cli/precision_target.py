"""The nodes that `npumake precision` searches and its objective, from arguments and project."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, NamedTuple

from npumake.cli.screen import SCREEN
from npumake.cli.selection import selection
from npumake.digest import Json
from npumake.errors import ProjectError, did_you_mean
from npumake.make.build import Build
from npumake.make.node import Node
from npumake.progress import hearing, listening

if TYPE_CHECKING:
    from npumake.make.trials import Task
    from npumake.quant.search.objective import Objective


class PrecisionTarget(NamedTuple):
    """The nodes of one variant and one target."""

    build: Build
    calibrated: Node
    comparison: Node
    task: Task | None = None
    gates: Json = ()

    @property
    def is_alone(self) -> bool:
        """Whether the project has only this variant and target."""
        return sum(node.stage == "calibrated" for node in self.build.plan.nodes) == 1


def bring_up(build: Build, names: set[str], quiet: bool) -> None:
    """Builds the named nodes and their inputs, unless they are current."""
    from npumake.make.maker import make

    needed = set(names)
    for node in reversed(build.plan.nodes):
        if node.name in needed:
            needed |= {*node.inputs.values()}
    for node in build.plan.nodes:
        if node.name in needed and not build.is_current(node):
            SCREEN.begin(node.name)
            with listening(SCREEN.progress), hearing(lambda line: None if quiet else print(line)):
                how, seconds, *_ = make(build, node)
            SCREEN.end()
            if not quiet:
                SCREEN.line(f"{how:<8}  {node.name:<44}  {seconds:6.2f} s")


def objective_of(arguments: argparse.Namespace, place: PrecisionTarget) -> Objective:
    from npumake.quant.search.objective import Objective

    limits = arguments.most_nodes, arguments.most_operations
    if place.task is not None:
        return Objective(_min_figure(arguments, place, place.task), "metric", *limits)
    if arguments.agreement is not None:
        return Objective(arguments.agreement, "agreement", *limits)
    return Objective(arguments.cosine, "cosine", *limits)


def _min_figure(arguments: argparse.Namespace, place: PrecisionTarget, task: Task) -> float:
    """The float model's figure minus the allowed drop. Raises ProjectError."""
    from npumake.evaluate.figures import Figures

    figures = Figures.load(place.build.artifact(task.score)).by_name
    if task.figure not in figures:
        hint = did_you_mean(task.figure, figures)
        raise ProjectError(f"the evaluation has no `{arguments.metric}`", hint=hint)
    drops = [gate["max_drop"] for gate in place.gates if gate["metric"] == task.figure]
    drop = arguments.max_drop if arguments.max_drop is not None else next(iter(drops), None)
    if drop is None:
        hint = "--max-drop 1.0, or a gate of it in the project"
        raise ProjectError(f"how far may `{arguments.metric}` drop?", hint=hint)
    return figures[task.figure] - float(drop)


def place_of(name: str, metric: str | None) -> PrecisionTarget:
    """The nodes of PROJECT[@VARIANT][:TARGET]. Raises ProjectError for an unknown one."""
    named = selection(name)
    build, calibrated = named.build, named.only_node("calibrated")
    target, group = calibrated.target, named.group
    nodes = {(n.target, n.stage): n for n in build.plan.nodes if n.group == group}
    task = None if metric is None else _task(build, calibrated, metric)
    verdict = nodes.get((target, "verdict"))
    gates = () if verdict is None else verdict.params["gates"]
    return PrecisionTarget(build, calibrated, nodes[target, "comparison"], task, gates)


def _task(build: Build, calibrated: Node, metric: str) -> Task:
    """The evaluation for `metric`. Raises ProjectError without one, or for an undeclared metric."""
    from npumake.make.trials import Task

    scores = [
        build.plan.node(node.inputs["float_score"])
        for node in build.plan.nodes
        if (node.group, node.target, node.stage)
        == (calibrated.group, calibrated.target, "evaluation")
    ]
    if not scores:
        hint = "add  evaluation: {dataset: {files: val/*/*.jpg}}"
        raise ProjectError("the project evaluates nothing", hint=hint)
    declared = scores[0].params["evaluation"]["metric"]
    if ".py:" in metric and metric != declared:
        message = f"the project's metric is `{declared}`, not `{metric}`"
        raise ProjectError(message, hint="only Python that the project declares is run")
    return Task(scores[0], metric.rpartition(":")[2])
