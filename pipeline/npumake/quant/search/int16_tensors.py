"""int16 tensors: what the switches `widen` and `widen_answers` put in int16, within the budget.

    widen_answers   what the output layers make, and all that is computed behind them
    widen           the tensors with uneven channels, and what functions make of them

A tensor is int16 where it is made and wherever it is read. A layer that makes one of 8 bits has no
use for int16 inputs, and multiplies as before: only layers that read such tensors cost more. Of
YOLOX `widen` takes 0.3 % of the multiply-accumulates, not 15, and the answers of no shared detector
take any.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from npumake.engine.fusion import result
from npumake.graph import Graph, Node, Value
from npumake.project.sections import Quantization
from npumake.quant.calibration.channel_imbalance import (
    int16_candidates,
    uneven_tensors,
    with_int16_nodes,
)
from npumake.quant.calibration.statistics import Statistics
from npumake.quant.correction.corrections import WIDENING, WIDENING_ANSWERS
from npumake.quant.precision.int16_share import typed_share
from npumake.quant.precision.precision_candidates import readers, with_tensors
from npumake.quant.precision.precision_plan import PrecisionPlan, plan_precision
from npumake.quant.precision.type_propagation import ACCUMULATING_OPERATORS, WIDE
from npumake.quant.search.int16_budget import affordable
from npumake.quant.search.output_layers import int16_output_layers
from npumake.targets.target import Target


def int16_tensors(
    switches: Collection[str],
    graph: Graph,
    statistics: Statistics,
    target: Target,
    quantization: Quantization,
    limit: float | None,
) -> tuple[str, ...]:
    """The names of the tensors in graph order. Those nearest to an output are taken first, which
    cost least. Raises ProjectError for an unknown name in `quantization`."""
    chosen: list[str] = []
    if WIDENING_ANSWERS in switches:
        nodes = int16_output_layers(graph, target, quantization)
        chosen += reversed([*_made_by(graph, nodes)])
    if WIDENING in switches:
        chosen += _around_uneven(graph, statistics, target, quantization)
    plan, free = plans(graph, quantization, target)
    values = graph.values()
    names = [name for name in dict.fromkeys(chosen) if may_be_int16(values[name], plan, free)]

    def share_of(tensors: Sequence[str]) -> float:
        return typed_share(graph, plan, with_tensors(graph, quantization, tensors), target)

    bought = affordable(names, share_of, limit)
    return tuple(name for name in _made_by(graph, None) if name in bought)


def plans(
    graph: Graph, quantization: Quantization, target: Target
) -> tuple[PrecisionPlan, PrecisionPlan]:
    """The plan, and that with int16 for all of its nodes where the project says nothing else."""
    plan = plan_precision(graph, quantization, target)
    names = [str(node.name) for node in plan.nodes]
    return plan, plan_precision(graph, with_int16_nodes(quantization, names), target)


def may_be_int16(value: Value, plan: PrecisionPlan, free: PrecisionPlan) -> bool:
    """Whether the tensor is int16 in `free` where it is made and at all its uses of `plan`."""
    uses = (free.reads.get(use) for use in readers(value) if use in plan.reads)
    return {free.makes.get(value), *uses} == {WIDE}


def _made_by(graph: Graph, names: Collection[str] | None) -> Iterator[str]:
    """What these nodes make, or all nodes for None, in graph order."""
    for node in graph.nodes():
        if names is None or str(node.name) in names:
            yield str(result(node).name)


def _around_uneven(
    graph: Graph, statistics: Statistics, target: Target, quantization: Quantization
) -> Iterator[str]:
    uneven = uneven_tensors(graph, statistics)
    names = int16_candidates(graph, statistics, target, quantization)

    def is_chosen(node: Node) -> bool:
        is_function = node.op_type not in ACCUMULATING_OPERATORS
        return str(node.name) in names and (is_function or str(result(node).name) in uneven)

    yield from _made_by(graph, {str(node.name) for node in graph.nodes() if is_chosen(node)})
