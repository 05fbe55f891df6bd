"""The names a person has for parts of a model, found in the optimized graph.

name      the nodes of that name, or that compute the trained node of that name; else the input
          of the model or the node that makes the tensor of that name
name...   every node behind it on the way to an output, itself excluded
INPUTS    the inputs of the model
BOXES     the nodes that make a detector's boxes of distances; none in a model without
*         everything
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from pipeline.detection.notes import box_nodes
from pipeline.errors import ProjectError, Route, did_you_mean
from pipeline.graph import Graph, Node, Value, origin, producer, reads
from pipeline.project.precision import Type, Types

EVERYTHING, INPUTS, BOXES, BEHIND = "*", "INPUTS", "BOXES", "..."

WIDEST = (EVERYTHING, INPUTS, BOXES)  # the weakest first


class Named(NamedTuple):
    nodes: tuple[Node, ...] = ()
    inputs: tuple[Value, ...] = ()


class Said(NamedTuple):
    """One rule: a name with its type, and the key it stands at."""

    name: str
    type: Type
    route: Route


def named(graph: Graph, name: str, route: Route) -> Named:
    """What `name` means in `graph`. Raises ProjectError at `route` when it means nothing."""
    if name == EVERYTHING:
        return Named(tuple(graph.nodes()), graph.inputs)
    if name == INPUTS:
        return Named((), graph.inputs)
    if name == BOXES:
        nodes = (node for trained in box_nodes(graph) for node in graph.find(trained))
        return Named(tuple(dict.fromkeys(nodes)))
    if name.endswith(BEHIND):
        start = _exactly(graph, name.removesuffix(BEHIND), route)
        return Named(_behind(graph, start))
    return _exactly(graph, name, route)


def in_order(graph: Graph, types: Types | tuple[Types, ...]) -> list[Said]:
    """The rules, the weakest first. A mapping has no order of its own: there the one that names
    less is the stronger, and of two `name...` the one that begins further behind."""
    if isinstance(types, Mapping):
        return _by_strength(graph, types, "quantization.types")
    return [
        said
        for index, rules in enumerate(types)
        for said in _by_strength(graph, rules, f"quantization.types.{index}")
    ]


def _by_strength(graph: Graph, rules: Types, route: str) -> list[Said]:
    said = (Said(name, rules[name], Route(f"{route}.{name}")) for name in sorted(rules))
    return sorted(said, key=lambda rule: _strength(graph, rule))


def _strength(graph: Graph, rule: Said) -> tuple[int, int]:
    if rule.name in WIDEST:
        return (WIDEST.index(rule.name), 0)
    if not rule.name.endswith(BEHIND):
        return (len(WIDEST) + 1, 0)
    return (len(WIDEST), -len(named(graph, rule.name, rule.route).nodes))


def _exactly(graph: Graph, name: str, route: Route) -> Named:
    if nodes := graph.find(name):
        return Named(nodes)
    value = graph.values().get(name)
    if value is not None and value.is_graph_input():
        return Named((), (value,))
    maker = None if value is None else producer(value)
    if maker is None:
        hint = did_you_mean(name, _all_names(graph))
        raise ProjectError(f"the optimized model has no node `{name}`", route, hint)
    return Named((maker,))


def _all_names(graph: Graph) -> Iterable[str]:
    nodes = graph.nodes()
    trained = {name for node in nodes for name in origin(node)}
    return trained | {str(node.name) for node in nodes} | {str(v.name) for v in graph.inputs}


def _behind(graph: Graph, start: Named) -> tuple[Node, ...]:
    reached = {*start.inputs, *(value for node in start.nodes for value in node.outputs)}
    found = []
    for node in graph.nodes():
        if not reached.isdisjoint(reads(node)):
            found.append(node)
            reached.update(node.outputs)
    return tuple(node for node in found if node not in start.nodes)
