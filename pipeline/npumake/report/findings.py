"""Findings: all data of one target on the page, as the JSON that its scripts read.

graph          nodes with position, unit and cosines, and the edges
tensors        distributions with calibrated ranges, and channels
losses         own error of each node (npumake.debug.diagnosis.local_error), largest first
outputs        error of each: calibrated, quantized, and of the compiled file
scores, gates, samples, recipe, notes
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from npumake import digest
from npumake.debug.compared import Comparison, NodeRow
from npumake.debug.compiled_check import CompiledCheck
from npumake.debug.diagnosis.local_error import Loss
from npumake.digest import Json
from npumake.engine.fusion import absorbed, result
from npumake.errors import CacheError
from npumake.evaluate.figures import EvaluationResult
from npumake.evaluate.verdict import Verdict
from npumake.graph import Graph, Node
from npumake.quant.search.recipe import Recipe
from npumake.report.layout import drawing
from npumake.report.sample_views import SampleComparison
from npumake.report.tensors import Channels, Distribution


@dataclass(frozen=True)
class Findings:
    document: Mapping[str, Json]

    suffix: ClassVar[str] = ".json"

    def save(self, path: Path) -> None:
        path.write_bytes(digest.canonical(self.document))

    @classmethod
    def load(cls, path: Path) -> Findings:
        """Raises CacheError for a file that `save` did not write."""
        try:
            document = json.loads(path.read_bytes())
        except ValueError as error:
            raise CacheError(f"not findings: {error}", str(path)) from error
        if not isinstance(document, dict) or document.keys() != KEYS:
            raise CacheError("not findings", str(path))
        return cls(document)


@dataclass(frozen=True)
class TargetFindings:
    """The artifacts of one target's build that the findings come from."""

    comparison: Comparison
    recipe: Recipe
    losses: tuple[Loss, ...]
    distributions: Mapping[str, Distribution]
    channels: Mapping[str, Channels]
    weights: Mapping[str, Channels]
    samples: tuple[SampleComparison, ...]
    evaluation: EvaluationResult | None
    verdict: Verdict | None
    estimate: Json = None  # latency (npumake.report.estimate), if known
    check: CompiledCheck | None = None  # of the compiled file


def findings(real: Graph, artifacts: TargetFindings) -> Findings:
    """`real` is the float graph whose tensors have the scales."""
    comparison, recipe, check = artifacts.comparison, artifacts.recipe, artifacts.check
    document: dict[str, Json] = {
        "target": comparison.target,
        "compared": comparison.samples,
        "int16": comparison.int16,
        "graph": graph_of(real, comparison.of_graph, artifacts.losses),
        "outputs": _outputs(comparison, check),
        "notes": (*_coverage(comparison), *comparison.notes, *(check.lines if check else ())),
        "recipe": {
            "method": recipe.method,
            "switches": recipe.switches,
            "wide": (*recipe.wide, *recipe.sensitive),
            "trials": [{"what": t.what, "kept": t.kept, "told": t.summary} for t in recipe.trials],
            "front": [
                {"what": t.what, "int16": t.int16, "closeness": t.closeness} for t in recipe.front
            ],
        },
        "losses": [loss._asdict() for loss in artifacts.losses],
        "distributions": artifacts.distributions,
        "channels": artifacts.channels,
        "weights": artifacts.weights,
        "samples": artifacts.samples,
        "scores": artifacts.evaluation.rows if artifacts.evaluation else (),
        "gates": artifacts.verdict.gates if artifacts.verdict else (),
        "estimate": artifacts.estimate,
    }
    return Findings(digest.plain(document))


def _coverage(comparison: Comparison) -> tuple[str, ...]:
    """What the figures come from, where that is not every sample."""
    is_part = comparison.samples < comparison.available
    return (f"nodes are compared on {comparison.coverage}",) if is_part else ()


def _outputs(comparison: Comparison, check: CompiledCheck | None) -> list[Json]:
    """Each output with the figures of the compiled file, None if it was not run."""
    compiled = {output.name: output for output in check.outputs} if check else {}
    return [
        {**digest.plain(output), "compiled": digest.plain(compiled.get(output.name))}
        for output in comparison.outputs
    ]


KEYS = {
    *(
        "target",
        "compared",
        "int16",
        "graph",
        "outputs",
        "notes",
        "recipe",
        "losses",
        "distributions",
    ),
    *("channels", "weights", "samples", "scores", "gates", "estimate"),
}


def graph_of(graph: Graph, rows: Iterable[NodeRow], losses: Iterable[Loss]) -> Json:
    """Every node with its figures. A fused clamp runs where its node does; nodes without a float
    output are not compared and have no figures."""
    nodes = graph.nodes()
    by_node = {row.node: row for row in rows}
    loss_by_node = {loss.node: loss.lost for loss in losses}
    owner = {clamp: node for node in nodes if (clamp := absorbed(node)) is not None}
    layout = drawing(graph)
    return {
        "nodes": [
            _node(
                node,
                place,
                by_node.get(str(owner.get(node, node).name)),
                loss_by_node,
                node in owner,
            )
            for node, place in zip(nodes, layout.places, strict=True)
        ],
        "edges": layout.edges,
    }


def _node(
    node: Node,
    place: tuple[float, int],
    row: NodeRow | None,
    loss_by_node: Mapping[str, float],
    is_absorbed: bool,
) -> dict[str, Json]:
    output = result(node)
    shape = [] if output.shape is None else [str(dim) for dim in output.shape]
    facts: dict[str, Json] = {
        "name": str(node.name),
        "type": node.op_type,
        "place": place,
        "tensor": str(output.name),
        "shape": "x".join(shape),
        "on": None if row is None else row.on,
    }
    if row is None or is_absorbed:
        return facts
    return facts | {
        "subgraph": row.subgraph,
        "calibrated": row.calibrated_cosine,
        "quantized": row.cosine,
        "lost": loss_by_node.get(row.node),
        "threshold": row.threshold,
        "dtype": row.dtype,
        "origin": row.origin,
    }
