"""Decisions: what a build decides for each node, for a tool that takes the float model.

`quantization` with resolved selectors + the nodes and tensors that a recipe widens a search -> its
method, percentile, grids and channels

Nodes have the names of the trained model, which a vendor's tool reads.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from npumake.dialects.handover import Decisions, NodeDecision, Unit
from npumake.graph import Graph, Node, origin
from npumake.project.sections import Calibration, Quantization
from npumake.quant.correction.corrections import PER_CHANNEL, switched_on
from npumake.quant.precision.type_propagation import OUT, WIDE, operands
from npumake.quant.precision.type_requests import RequestedTypes, requested_types
from npumake.quant.search.methods import types_with, with_recipe_method
from npumake.quant.search.recipe import Recipe

NARROW = "int8"
PREPROCESS = "preprocess_"
WIDENING = ("widen", "widen_answers", "widen_sensitive")


def decisions(
    graph: Graph,
    trained: Collection[str],
    calibration: Calibration,
    quantization: Quantization,
    recipe: Recipe | None,
) -> Decisions:
    """The decisions for the optimized `graph` of a model with the nodes `trained`. Raises
    ProjectError for a name that selects nothing."""
    requests = replace(quantization, outputs=None)
    if recipe is not None:
        requests = types_with(graph, recipe, requests)
    requested = requested_types(graph, requests)
    nodes: dict[str, NodeDecision] = {}
    nameless = []
    for node in graph.nodes():
        decision = _decision(node, requested)
        name = trained_name(node, trained)
        if decision is None:
            continue
        if name is None:
            nameless.append(str(node.name))
        else:
            nodes[name] = decision
    ranges = calibration if recipe is None else _calibration(calibration, recipe)
    switches = () if recipe is None else _switches_of_search(calibration, quantization, recipe)
    return Decisions(nodes, tuple(nameless), ranges, switches, recipe is not None)


def trained_name(node: Node, trained: Collection[str]) -> str | None:
    """The trained node that the node computes, or the vendor tool's name for our own; None for
    neither."""
    name = str(node.name)
    if name.startswith(PREPROCESS):
        return f"HZ_PREPROCESS_FOR_{name.removeprefix(PREPROCESS)}"
    return next((candidate for candidate in (name, *origin(node)) if candidate in trained), None)


def _decision(node: Node, requested: RequestedTypes) -> NodeDecision | None:
    unit: Unit | None = "cpu" if node in requested.cpu else "npu" if node in requested.npu else None
    inputs = {index: kind for index in operands(node) if (kind := _type(node, index, requested))}
    output, whole = _type(node, OUT, requested), requested.types.get(node)
    if not (unit or inputs or output or whole):
        return None
    return NodeDecision(unit, whole, inputs, len(operands(node)), output)


def _type(node: Node, place: int, requested: RequestedTypes) -> str | None:
    if node in requested.types:
        return None
    if (node, place) in requested.by_use.wide:
        return WIDE
    return NARROW if (node, place) in requested.by_use.narrow else None


def _calibration(calibration: Calibration, recipe: Recipe) -> Calibration:
    """`calibration` with the result of a search; unchanged without one."""
    if not recipe.trials or recipe.selected:
        return calibration  # the vendor's tool searches
    method = replace(with_recipe_method(calibration, recipe), recipe="plain")
    channels = PER_CHANNEL in recipe.switches
    return replace(method, symmetric=recipe.symmetric, per_channel=channels)


def _switches_of_search(
    calibration: Calibration, quantization: Quantization, recipe: Recipe
) -> tuple[str, ...]:
    settled = (*switched_on(quantization, calibration), *WIDENING, PER_CHANNEL)
    return tuple(name for name in recipe.switches if name not in settled)
