"""Describes artifacts that are JSON documents, as data."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from npumake.data.samples import Samples
from npumake.debug.compared import Comparison
from npumake.debug.compiled_check import CompiledCheck
from npumake.digest import Json
from npumake.errors import CacheError
from npumake.quant.search.recipe import Recipe

A = TypeVar("A", CompiledCheck, Recipe, Samples)


@dataclass(frozen=True)
class ArtifactDescription:
    """`facts` by name; `inputs` and `outputs` of a model; `rows` in the order of `columns`."""

    kind: str
    facts: Mapping[str, Json]
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[Json, ...], ...] = ()


def loaded(kind: type[A], path: Path) -> A | None:
    """None for a file of another kind."""
    try:
        return kind.load(path)
    except CacheError:
        return None


def notes_of(notes: tuple[str, ...]) -> dict[str, Json]:
    return {"notes": list(notes)} if notes else {}


def _recipe(path: Path) -> ArtifactDescription | None:
    if (recipe := loaded(Recipe, path)) is None:
        return None
    rows = tuple(
        (name, low, high, recipe.methods.get(name, recipe.method))
        for name, (low, high) in recipe.ranges.items()
    )
    facts = {"method": recipe.method, "symmetric": recipe.symmetric, "tried": recipe.lines}
    return ArtifactDescription(
        "recipe", facts, columns=("Tensor", "Low", "High", "Method"), rows=rows
    )


def _comparison(path: Path) -> ArtifactDescription:
    comparison = Comparison.load(path)
    rows = tuple(
        (row.node, row.on, row.type, row.calibrated_cosine, row.cosine, row.threshold, row.dtype)
        for row in comparison.rows
    )
    outputs = {
        o.name: {"cosine": o.cosine, "chebyshev": o.quantized.chebyshev} for o in comparison.outputs
    }
    cosines = "Calibrated Cosine", "Quantized Cosine"
    columns = ("Node", "ON", "Type", *cosines, "Threshold", "DataType")
    facts = {"target": comparison.target, "compared": comparison.coverage, "outputs": outputs}
    facts |= notes_of(comparison.notes)
    return ArtifactDescription("comparison", facts, columns=columns, rows=rows)


def _compiled_check(path: Path) -> ArtifactDescription | None:
    if (check := loaded(CompiledCheck, path)) is None:
        return None
    columns = ("Output", "Compiled Cosine", "Codes", "Relative")
    return ArtifactDescription("compiled check", check.facts, columns=columns, rows=check.rows)


def _findings(path: Path) -> ArtifactDescription | None:
    """The data of the report: here, the nodes with the largest losses."""
    try:
        document = json.loads(path.read_bytes())
        rows = tuple((loss["node"], loss["lost"]) for loss in document["losses"])
        facts = {"target": document["target"], "samples": document["compared"]}
    except (ValueError, RecursionError, KeyError, TypeError):
        return None
    return ArtifactDescription("findings", facts, columns=("Node", "Own error"), rows=rows)


def _figures(path: Path) -> ArtifactDescription | None:
    """A score, an evaluation or a verdict: its own description."""
    try:
        document = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        return None
    if not isinstance(document, dict) or "outputs" in document:
        return None
    return ArtifactDescription("figures", document)


# Tried in this order: each recognizes its own kind, the last takes the rest.
DOCUMENTS: tuple[Callable[[Path], ArtifactDescription | None], ...] = (
    _recipe,
    _findings,
    _compiled_check,
    _figures,
    _comparison,
)
