"""Rules about parts that a model need not have: where it has none, they are left out, with a note.

A vendor's file may ask for the type of an operator in models that have no such operator.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

from npumake.errors import ProjectError, Route
from npumake.graph import Graph
from npumake.project.sections import Quantization
from npumake.quant.precision.selectors import named

T = TypeVar("T")
MISSING = "the rule for `{}` has no effect: the model has no such node"


def without_missing(graph: Graph, asked: Quantization) -> tuple[Quantization, list[str]]:
    """`asked` less the rules for names of `optional` that mean nothing in `graph`; their notes.
    `cpu` and `npu` keep their order."""
    gone = [name for name in asked.optional if not _is_there(graph, name)]
    if not gone:
        return asked, []
    types = asked.types
    kept = replace(
        asked,
        types=_less(types, gone)
        if isinstance(types, Mapping)
        else tuple(_less(rules, gone) for rules in types),
        layers=_less(asked.layers, gone),
        cpu=tuple(name for name in asked.cpu if name not in gone),
        npu=tuple(name for name in asked.npu if name not in gone),
    )
    return kept, [MISSING.format(name.removesuffix("(*)")) for name in gone]


def _is_there(graph: Graph, name: str) -> bool:
    try:
        found = named(graph, name, Route("quantization.optional"))
    except ProjectError:
        return False
    return bool(found.nodes or found.inputs)


def _less(rules: Mapping[str, T], gone: list[str]) -> dict[str, T]:
    return {name: rule for name, rule in rules.items() if name not in gone}
