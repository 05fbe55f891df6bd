"""`npumake list --scores`: one line per build, from the artifacts that are current.

Cosine is that of the worst output over the samples, before and after compilation. Figures are those
of `evaluation:`. A build that is not current has a dash instead.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from npumake.make.build import Build, NodeState
from npumake.make.node import Node

if TYPE_CHECKING:
    from rich.table import Table

NO_FIGURE = "--"


def scores(build: Build, nodes: Iterable[Node]) -> Iterator[dict[str, Any]]:
    """A row for each compiled node of `nodes`. Raises CacheError."""
    states = build.states()
    for node in nodes:
        if node.stage == "compiled":
            yield _row(build, node, states)
    build.memory.save()


def _row(build: Build, compiled: Node, states: dict[str, NodeState]) -> dict[str, Any]:
    """The figures of one build: its siblings have the same group and target."""
    siblings = {
        node.stage: build.artifact(node)
        for node in build.plan.nodes
        if (node.group, node.target) == (compiled.group, compiled.target)
        and states[node.name].status == "current"
    }
    return {
        "project": compiled.group,
        "target": compiled.target,
        "cosine": _worst(siblings, "comparison"),
        "compiled_cosine": _worst(siblings, "compiled_check"),
        "figures": _figures(siblings.get("evaluation")),
        "bytes": siblings["compiled"].stat().st_size if "compiled" in siblings else None,
        "status": states[compiled.name].status,
    }


def _worst(files: Mapping[str, Path], stage: str) -> float | None:
    """The lowest cosine of the outputs in the report of a stage; NaN is lowest."""
    from npumake.debug.compared import Comparison
    from npumake.debug.compiled_check import CompiledCheck

    if stage not in files:
        return None
    file = files[stage]
    report = Comparison.load(file) if stage == "comparison" else CompiledCheck.load(file)
    cosines = [output.cosine for output in report.outputs]
    return min(cosines, key=lambda cosine: (not math.isnan(cosine), cosine), default=None)


def _figures(file: Path | None) -> list[dict[str, Any]]:
    from npumake.evaluate.figures import EvaluationResult

    if file is None:
        return []
    rows = EvaluationResult.load(file).rows
    return [
        {"artifact": row.artifact, "metric": row.metric, "value": row.value, "files": row.pictures}
        for row in rows
    ]


def scores_table(rows: list[dict[str, Any]], width: int | None) -> Table:
    from npumake.cli.columns import Column, Line, draw_table

    columns = [
        Column("Project", "name"),
        Column("Target", "name"),
        Column("Cosine", "figure"),
        Column("Compiled Cosine", "figure"),
        Column("Figures", "name"),
        Column("Bytes", "figure", is_optional=True),
        Column("Status"),
    ]
    return draw_table(columns, [Line(_cells(row)) for row in rows], width)


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    figures = (f"{f['artifact']} {f['metric']} {f['value']:.4g}" for f in row["figures"])
    cosines = (
        NO_FIGURE if row[key] is None else f"{row[key]:.6f}"
        for key in ("cosine", "compiled_cosine")
    )
    size = NO_FIGURE if row["bytes"] is None else str(row["bytes"])
    return (
        row["project"],
        str(row["target"]),
        *cosines,
        ", ".join(figures) or NO_FIGURE,
        size,
        row["status"],
    )
