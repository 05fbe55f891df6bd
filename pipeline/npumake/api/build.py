"""build: a project, node by node, as `npumake build` does; without doit and without a terminal."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from npumake.api.results import BuildResult, NodeResult, TargetResult
from npumake.cli.projects import read_builds
from npumake.errors import CacheError, PipelineError, ProjectError, did_you_mean
from npumake.make.batch import begin_batch
from npumake.make.build import Build
from npumake.make.maker import make
from npumake.make.memory import BuildMemory, cache_directory, workspace
from npumake.make.node import Node, needed_by, without_refused
from npumake.progress import hearing

Progress = Callable[[NodeResult], None]


def build(
    project: str | os.PathLike[str],
    targets: Sequence[str] | None = None,
    *,
    paranoid: bool = False,
    progress: Progress | None = None,
) -> BuildResult:
    """Builds the project in a folder, except for current artifacts.

    `targets` selects some of the project's (None: all), in every variant. `paranoid` reads every
    file again. `progress` is called after each node.

    >>> import npumake
    >>> result = npumake.build("projects/digits", targets=["rdk-x5"])
    >>> result["rdk-x5"].outputs["logits"]["cosine"] > 0.99
    True
    >>> result["rdk-x5"].compiled.name
    'digits.rdk-x5.hybrid'
    >>> {node.how for node in npumake.build("projects/digits", targets=["rdk-x5"]).nodes}
    {'current'}

    Raises PipelineError; all that does not need the failed node is built before.
    """
    directory = Path(os.path.abspath(project))
    if not (directory / "project.yaml").is_file():
        raise ProjectError("no project here", str(project), "name the folder of a project.yaml")
    memory = BuildMemory(cache_directory(directory), paranoid or None, workspace(directory))
    memory.sweep()
    opened = _opened(directory, memory)
    nodes = _selected(opened, targets)
    begin_batch((opened,), frozenset(node.name for node in nodes))
    notes: list[str] = []
    try:
        with hearing(notes.append):
            steps = _steps(opened, nodes, progress)
    finally:
        memory.save()
        notes += memory.finish_uploads()
    return BuildResult(directory.name, steps, _targets(opened, nodes), _notes(notes, memory))


def _notes(messages: Sequence[str], memory: BuildMemory) -> tuple[str, ...]:
    unstored = f"nothing is stored: {memory.unstored}" if memory.unstored else ""
    return tuple(filter(None, dict.fromkeys([*messages, memory.note, unstored])))


def _opened(directory: Path, memory: BuildMemory) -> Build:
    """Raises PipelineError for a project that cannot be planned."""
    ((_, opened),) = read_builds([directory], memory)
    if isinstance(opened, PipelineError):
        raise opened
    return opened


def _selected(opened: Build, targets: Sequence[str] | None) -> list[Node]:
    """The nodes to build, each behind its inputs. Raises ProjectError for an unknown target."""
    nodes = opened.plan.nodes
    if targets is None:
        return list(nodes)
    target_names = {node.target for node in nodes if node.target}
    for target in targets:
        if target not in target_names:
            raise ProjectError(
                f"the project has no target `{target}`",
                "targets",
                did_you_mean(target, target_names),
            )
    inputs = {node.name: _waits_for(node) for node in nodes}
    needed = needed_by((node.name for node in nodes if node.target in targets), inputs)
    return [node for node in nodes if node.name in needed]


def _waits_for(node: Node) -> tuple[str, ...]:
    return (*node.inputs.values(), *([node.twin] if node.twin else []), *node.traced)


def _steps(
    opened: Build, nodes: Sequence[Node], progress: Progress | None
) -> tuple[NodeResult, ...]:
    """Raises the first PipelineError after the nodes that do not need the failed one; that of the
    cache or the disk at once."""
    steps: list[NodeResult] = []
    errors: list[PipelineError] = []
    refusals: dict[str, tuple[str, str]] = {}
    for node in nodes:
        sources = [*node.inputs.values(), *([node.twin] if node.twin else [])]
        failed = [name for name in sources if name in refusals]
        if failed and (not node.joins or len(failed) == len(sources)):
            refusals[node.name] = refusals[failed[0]]
            continue
        try:
            steps.append(
                _step(opened, without_refused(node, refusals if failed else None), progress)
            )
        except CacheError:
            raise
        except PipelineError as error:
            refusals[node.name] = error.what, error.hint
            errors.append(error)
    if errors:
        raise errors[0]
    return tuple(steps)


def _step(opened: Build, node: Node, progress: Progress | None) -> NodeResult:
    start = time.perf_counter()
    if opened.is_current(node):
        result = NodeResult(node.name, "current", time.perf_counter() - start)
    else:
        outcome = make(opened, node)
        result = NodeResult(node.name, outcome.how, outcome.seconds)
    if progress is not None:
        progress(result)
    return result


def _targets(opened: Build, nodes: Sequence[Node]) -> dict[str, TargetResult]:
    """Per target and variant, the artifacts that belong to it."""
    shared: dict[str | None, dict[str, Path]] = {}
    own: dict[tuple[str, str | None], dict[str, Path]] = {}
    for node in nodes:
        if node.target is None:
            shared.setdefault(node.variant, {})[node.stage] = opened.artifact(node)
        else:
            files = own.setdefault((node.target, node.variant), {})
            files[node.stage] = opened.artifact(node)
    results = {}
    for (target, variant), files in own.items():
        name = f"{target}@{variant}" if variant else target
        artifacts = {**shared.get(None, {}), **shared.get(variant, {}), **files}
        results[name] = TargetResult(name, artifacts)
    return results
