"""Precision candidates: nodes that may get more bits, their cost, and the YAML for it.

    int16     the node's inputs and output; so also its producers' outputs and its readers' inputs
    float16   the node alone
    cpu       the node alone, in float32

A data movement is not a candidate: it takes the type of its input.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from math import prod
from typing import Literal

from npumake import digest
from npumake.digest import Json
from npumake.engine.fusion import absorbed, result
from npumake.engine.quantized_node import is_constant
from npumake.errors import ProjectError
from npumake.graph import Graph, Node, Value, producer, shape
from npumake.project.precision import LayerTypes, Type, Types
from npumake.project.sections import Quantization
from npumake.quant.precision.int16_share import multiply_accumulates
from npumake.quant.precision.placement import activations, source_tensor
from npumake.quant.precision.precision_plan import PrecisionPlan, plan_precision
from npumake.quant.precision.type_propagation import MOVING_OPERATORS, OUT, WIDE, operands
from npumake.targets.parts import takes_int16
from npumake.targets.target import Target

Promoted = Literal["int16", "float16", "cpu"]


def candidates(
    graph: Graph, target: Target, quantization: Quantization, to: Promoted
) -> dict[str, int]:
    """The operation counts of every 8-bit chip node that may be promoted, by name, in order.

    Raises ProjectError if there is none.
    """
    return _candidates(plan_precision(graph, quantization, target), target, to)


def _candidates(plan: PrecisionPlan, target: Target, to: Promoted) -> dict[str, int]:
    has_it = target.float16 or to != "float16"
    costs = {
        str(node.name): operations(node)
        for node in plan.nodes
        if has_it and node.op_type not in MOVING_OPERATORS and _is_narrow(node, plan)
        if to != "int16" or takes_int16(node, target)
    }
    if not costs:
        others = "--to cpu" if to != "cpu" else ""
        raise ProjectError(f"{target.name} has no 8-bit node to promote to {to}", hint=others)
    return costs


def _is_narrow(node: Node, plan: PrecisionPlan) -> bool:
    """Whether the node outputs 8 bits, or int32 sums."""
    return node in plan.sums or plan.makes.get(result(node), WIDE) != WIDE


def operations(node: Node) -> int:
    """Multiply-accumulates of the node; output elements of a node without weights."""
    return multiply_accumulates(node) or prod(shape(node.outputs[0]))


def promoted(
    graph: Graph, target: Target, quantization: Quantization, names: Collection[str], to: Promoted
) -> Quantization:
    """`quantization` with these nodes promoted to `to`; its rules for single uses stay."""
    chosen = sorted(names)
    if not chosen:
        return quantization
    if to == "cpu":
        return replace(quantization, cpu=(*quantization.cpu, *chosen))
    types = _followed(quantization.types, dict.fromkeys(chosen, to))
    if to == "float16" or target.same_types:  # int16 spreads by itself
        return replace(quantization, types=types)
    around = _neighbors(graph, target, chosen)
    return replace(quantization, types=types, layers={**around, **quantization.layers})


def with_tensors(graph: Graph, quantization: Quantization, names: Collection[str]) -> Quantization:
    """`quantization` with int16 for these tensors at their producers and readers, for constants of
    the producers, and for no other use of those nodes. Its rules for single uses stay."""
    if not names:
        return quantization
    values, spots = graph.values(), dict[Node, set[int]]()
    for value in (values[name] for name in names):
        for node, place in (*_made_at(value), *readers(value)):
            spots.setdefault(node, set()).add(place)
    layers = {str(node.name): _layer(node, uses) for node, uses in spots.items()}
    return replace(quantization, layers={**layers, **quantization.layers})


def _made_at(value: Value) -> Iterator[tuple[Node, int]]:
    """The producer's output, and its constant operands: a sum is as coarse as what is added."""
    maker = producer(value)
    if maker is not None:
        yield maker, OUT
        before = None if maker.inputs[0] is None else producer(maker.inputs[0])
        node = maker if before is None or absorbed(before) is not maker else before
        yield from ((node, i) for i in operands(node) if is_constant(node.inputs[i]))


def readers(value: Value) -> Iterator[tuple[Node, int]]:
    """The nodes that compute with the values, with the input index; data movements are looked
    through."""
    waiting = [*value.uses()][::-1]
    moves: set[Node] = set()  # both halves of a tensor may lead to one Concat
    while waiting:
        use = waiting.pop()
        if use.node in moves:
            continue
        if use.node.op_type in MOVING_OPERATORS:
            moves.add(use.node)
            further = [further for moved in use.node.outputs for further in moved.uses()]
            waiting += reversed(further)
        elif use.idx in operands(use.node):
            yield use.node, use.idx


def section(quantization: Quantization) -> Json:
    """The `quantization:` section as JSON, without default values."""
    usual = digest.plain(Quantization())
    keys = {key: value for key, value in digest.plain(quantization).items() if value != usual[key]}
    layers = keys.get("layers", {})
    shortened = {n: {key: value for key, value in of.items() if value} for n, of in layers.items()}
    return keys | ({"layers": shortened} if layers else {})


def all_but(
    graph: Graph, target: Target, quantization: Quantization, names: Iterable[str], to: Promoted
) -> Iterator[Quantization]:
    """For each name `quantization` with every candidate promoted but this one, whose inputs and
    output stay as they are."""
    plan = plan_precision(graph, quantization, target)
    every, sums = _candidates(plan, target, to), {node.name for node in plan.sums}
    for name in names:
        others = [other for other in every if other != name]
        changed = promoted(graph, target, quantization, others, to)
        if to == "int16" and name in sums:  # its output has no 8 bits
            layers = {name: LayerTypes(input="int8"), **quantization.layers}
            changed = replace(changed, layers=layers)
        elif to == "int16":  # its neighbors would make it int16
            types = _followed(changed.types, {name: "int8"})
            changed = replace(changed, types=types, layers=quantization.layers)
        yield changed


def _followed(types: Types | tuple[Types, ...], last: Types) -> Types | tuple[Types, ...]:
    """`types` with one more rule at the end: later rules win."""
    if isinstance(types, tuple):
        return (*types, last)
    return (types, last) if types else last


def _neighbors(graph: Graph, target: Target, names: Collection[str]) -> dict[str, LayerTypes]:
    """The int16 uses around the nodes: outputs of their producers, and inputs of their readers."""
    wholes = {clamp: node for node in graph.nodes() if (clamp := absorbed(node)) is not None}
    spots: dict[Node, set[int]] = {}
    for name in names:
        for node in graph.find(name):
            makers = [producer(source_tensor(value)) for value in activations(node)]
            for maker in makers:
                if maker is not None:
                    spots.setdefault(wholes.get(maker, maker), set()).add(OUT)
            for reader, index in readers(result(node)):
                spots.setdefault(reader, set()).add(index)
    return {
        str(node.name): _layer(node, uses)
        for node, uses in spots.items()
        if node.name not in names and takes_int16(node, target)
    }


def _layer(node: Node, spots: Collection[int]) -> LayerTypes:
    last = max(spots)
    inputs: list[Type | None] = ["int16" if index in spots else None for index in range(last + 1)]
    return LayerTypes(inputs=tuple(inputs), output="int16" if OUT in spots else None)
