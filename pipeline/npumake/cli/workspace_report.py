"""The figures of a workspace: of its builds of today, and of earlier ones from the store."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from npumake import digest
from npumake.cache.local import LocalStore
from npumake.debug.compared import Comparison
from npumake.debug.compiled_check import CompiledCheck
from npumake.errors import CacheError
from npumake.evaluate.figures import EvaluationResult
from npumake.evaluate.verdict import Verdict
from npumake.make.build import Build
from npumake.make.history import (
    PastBuild,
    TargetBuild,
    changes,
    history,
    owner_of,
    target_build,
)
from npumake.make.memory import cache_directory
from npumake.make.node import Node
from npumake.progress import tell
from npumake.report.workspace import BuildRow, PastFigures

NANOSECONDS = 1e9


def workspace_rows(builds: Iterable[Build], directory: Path) -> Iterator[BuildRow]:
    """A row for each variant and target, in the order of their projects. Raises CacheError."""
    planned = [
        (build, node, build.states()[node.name].status)
        for build in builds
        for node in build.plan.nodes
        if node.stage == "comparison"
    ]
    today = [target_build(build, node) for build, node, _ in planned]
    store = LocalStore(cache_directory(directory).absolute())
    owned: dict[int, list[PastBuild]] = {}
    for past in history(store).builds:
        if (index := owner_of(past, today)) is not None:
            owned.setdefault(index, []).append(past)
    for index, (build, node, status) in enumerate(planned):
        yield _row(
            build, node, status, today[index], _figures(store, owned.get(index, ()), today[index])
        )


def _row(
    build: Build, node: Node, status: str, today: TargetBuild, past: Sequence[PastFigures]
) -> BuildRow:
    """The row with the figures of `out/` as its last ones."""
    now = _now(build, node) if today.key is not None else None
    return BuildRow(
        build.plan.project,
        node.variant or "",
        today.target,
        status,
        now is not None,
        (*past, *([now] if now else [])),
    )


def _figures(
    store: LocalStore, past: Iterable[PastBuild], today: TargetBuild
) -> tuple[PastFigures, ...]:
    """Of builds before today's whose artifacts are still in the store."""
    figures, unreadable = [], 0
    for build in past:
        if build.key == today.key:
            continue
        files = {
            stage: blob
            for stage, result in build.results.items()
            if (blob := _verified(store, result.digest)) is not None
        }
        size = build.results["compiled"].size if "compiled" in build.results else None
        if "comparison" in files:
            differing = changes(build.settings, today.settings)
            try:
                figures.append(_measured(files, build.time_ns, size, differing))
            except CacheError:  # in the format of another version
                unreadable += 1
    if unreadable:
        where = f"{today.name}:{today.target}"
        tell(f"note: {where}: {unreadable} earlier builds of another version are not shown")
    return tuple(figures)


def _verified(store: LocalStore, name: str) -> Path | None:
    """The blob, if it is whole. Its time stays: to be shown is no use."""
    blob = store.blob(name)
    try:
        return blob if digest.of_file(blob) == name else None
    except OSError:
        return None


def _now(build: Build, node: Node) -> PastFigures | None:
    """Of the artifacts in `out/`; None where one was removed, or is of another version."""
    files = {
        other.stage: path
        for other in build.plan.nodes
        if (other.group, other.target) == (node.group, node.target)
        and (path := build.artifact(other)).is_file()
    }
    if "comparison" not in files:
        return None
    size = files["compiled"].stat().st_size if "compiled" in files else None
    try:
        return _measured(files, files["comparison"].stat().st_mtime_ns, size, ())
    except CacheError:  # a build makes it again
        return None


def _measured(
    files: Mapping[str, Path], time_ns: int, size: int | None, differing: tuple[str, ...]
) -> PastFigures:
    """Raises CacheError for a damaged artifact."""
    comparison = Comparison.load(files["comparison"])
    check = CompiledCheck.load(files["compiled_check"]) if "compiled_check" in files else None
    scores = EvaluationResult.load(files["evaluation"]).rows if "evaluation" in files else ()
    verdict = Verdict.load(files["verdict"]) if "verdict" in files else None
    rows = [(row.node, row.cosine) for row in comparison.rows if row.cosine is not None]
    return PastFigures(
        time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(time_ns / NANOSECONDS)),
        _worst(output.cosine for output in comparison.outputs) if comparison.samples else None,
        _worst(output.cosine for output in check.outputs) if check else None,
        size,
        tuple((row.artifact, row.metric, row.value) for row in scores),
        (len(verdict.gates) - len(verdict.unmet), len(verdict.gates)) if verdict else None,
        min(rows, key=lambda row: row[1], default=None) if comparison.samples else None,
        differing,
    )


def _worst(cosines: Iterable[float]) -> float | None:
    """The lowest; None where one is not a number."""
    values = [*cosines]
    return min(values, default=None) if all(map(math.isfinite, values)) else None
