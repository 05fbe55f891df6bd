"""Optional rules: rules for parts that this model lacks are dropped, with a note.

A vendor's file may set the type of an operator for models without it.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

from npumake.errors import ProjectError, Route
from npumake.graph import Graph, GraphNames
from npumake.project.sections import Quantization
from npumake.quant.precision.selectors import OF_OPERATOR, is_of_nodes, named_part, select_nodes

T = TypeVar("T")
MAX_HINTS = 8  # names; similar ones take long to find
CLOSE = 0.9  # similarity of names; those of one model resemble each other
MISSING = "the rule for `{}` has no effect: the model has no such node"


def without_missing(
    parts: GraphNames, quantization: Quantization
) -> tuple[Quantization, list[str]]:
    """`quantization` without the `optional` rules that select nothing in the graph, and a note for
    each. `cpu` and `npu` keep their order."""
    absent = [name for name in quantization.optional if not _is_there(parts, name)]
    if not absent:
        return quantization, []
    types = quantization.types
    remaining = replace(
        quantization,
        types=_without(types, absent)
        if isinstance(types, Mapping)
        else tuple(_without(rules, absent) for rules in types),
        layers=_without(quantization.layers, absent),
        cpu=tuple(name for name in quantization.cpu if name not in absent),
        npu=tuple(name for name in quantization.npu if name not in absent),
    )
    return remaining, [
        _missing_note(parts.graph, name, len(absent) <= MAX_HINTS) for name in absent
    ]


def _missing_note(graph: Graph, name: str, with_hint: bool) -> str:
    """A note; for a single node with a similar name."""
    if name.endswith(OF_OPERATOR) or not with_hint:
        return MISSING.format(name.removesuffix(OF_OPERATOR))
    names = [str(node.name) for node in graph.nodes()]
    near = difflib.get_close_matches(name, names, n=1, cutoff=CLOSE)
    return MISSING.format(name) + (f"; did you mean `{near[0]}`?" if near else "")


def _is_there(parts: GraphNames, name: str) -> bool:
    if is_of_nodes(name) and not name.endswith(OF_OPERATOR):
        return named_part(parts, name) is not None  # far faster than an error with its hint
    try:
        selected = select_nodes(parts, name, Route("quantization.optional"))
    except ProjectError:
        return False
    return bool(selected.nodes or selected.inputs)


def _without(rules: Mapping[str, T], absent: list[str]) -> dict[str, T]:
    return {name: rule for name, rule in rules.items() if name not in absent}
