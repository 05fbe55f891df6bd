"""Compares every node of the float graph with the same node calibrated and quantized.

Sums accumulate sample by sample (npumake.kernels.measure), so memory does not grow with samples.
Figures are rounded to DIGITS: the last bits of a float engine are not a result.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from npumake.bundle.program import SUMS, Program, Tensor
from npumake.custom.operators import NO_OPERATORS, Operators
from npumake.debug.compared import DIGITS, Comparison, NodeRow, OutputRow, distance
from npumake.debug.compared_models import ComparedModels, TensorSums, not_a_number
from npumake.debug.listed import listed, listing_of
from npumake.debug.twins import View, tensor_of
from npumake.engine.fusion import absorbed
from npumake.engine.ort import Feeds
from npumake.graph import (
    Graph,
    Node,
    annotations_of,
    is_float16,
    origin,
)
from npumake.quant.precision.int16_share import int16_share
from npumake.quant.precision.placement import subgraphs
from npumake.targets.onnx_limits import beyond_documented
from npumake.targets.target import Target


def compare(
    optimized_float: Graph,
    calibrated: Graph,
    quantized: Graph,
    feeds: Iterable[Feeds],
    target: Target,
    operators: Operators = NO_OPERATORS,
) -> Comparison:
    """Compare over `feeds`; each of the three engines runs each feed once. Raises GraphError, and
    StageError if quantization produces NaN."""
    models = ComparedModels(optimized_float, calibrated, quantized, target, operators)
    return compared(models, models.sums(feeds))


def compared(models: ComparedModels, samples: Iterable[Sequence[TensorSums]]) -> Comparison:
    """The comparison, from the sums of each sample. Raises as `compare`."""
    sums, count = _totals(models, samples)
    _refuse_nan(models.nodes, sums)
    graph, program, target = models.optimized_float, models.program, models.target
    unit = _in_integers(graph, program) | _in_float16(graph, models.calibrated)
    numbers = subgraphs(graph, unit)
    node_tensors = ((node, tensor_of(node)) for node in models.nodes)
    rows = tuple(
        _row(node, sums[name], models.views[name], program, target, numbers.get(node))
        for node, name in node_tensors
    )
    outputs = tuple(_output(str(value.name), sums[str(value.name)]) for value in graph.outputs)
    notes = (*annotations_of(models.calibrated), *beyond_documented(graph, target))
    listing = listing_of(graph, target, rows, models.views, program)
    listed_rows = rows if listing is None else listed(listing, rows)
    own = () if listing is None else rows
    share = int16_share(models.quantized)
    return Comparison(target.name, count, listed_rows, outputs, notes, nodes=own, int16=share)


def _totals(
    models: ComparedModels, samples: Iterable[Sequence[TensorSums]]
) -> tuple[dict[str, TensorSums], int]:
    """The sums of each tensor over all samples, in their order, and the number of samples."""
    totals = [TensorSums()] * len(models.views)
    count = 0
    for sample in samples:
        totals = [total.plus(sums) for total, sums in zip(totals, sample, strict=True)]
        count += 1
    return dict(zip(models.views, totals, strict=True)), count


def _in_integers(graph: Graph, program: Program) -> set[Node]:
    """The nodes that the program runs on the unit, fused ones included."""
    left = {step.name for step in program.instructions if step.op == "onnx"}
    return {node for node in graph.nodes() if str(node.name) not in left}


def _in_float16(graph: Graph, calibrated: Graph) -> set[Node]:
    """The nodes that the unit computes in float16."""
    names = {str(node.name) for node in calibrated.nodes() if is_float16(node)}
    return {node for node in graph.nodes() if str(node.name) in names}


def _refuse_nan(nodes: Iterable[Node], sums: Mapping[str, TensorSums]) -> None:
    """Raises StageError for the first node whose values cannot be compared."""
    for node in nodes:
        node_sums = sums[tensor_of(node)]
        if math.isnan(node_sums.calibrated.cosine) or math.isnan(node_sums.quantized.cosine):
            raise not_a_number(str(node.name))


def _types(grids: list[Tensor], view: View, gives: str) -> str:
    """Input and output type of a node on the unit; data movement of int32 sums reads sums."""
    if grids:
        return f"{grids[0].dtype}/{gives}"
    return f"{SUMS}/{SUMS}" if view.sums else "float/float"


def _row(
    node: Node,
    sums: TensorSums,
    view: View,
    program: Program,
    target: Target,
    subgraph: int | None,
) -> NodeRow:
    clamp = absorbed(node)
    read = (program.tensors.get(name) for name in view.read)
    grids = [tensor for tensor in read if tensor is not None and tensor.scale is not None]
    output = program.tensors[view.program]
    in_integers = subgraph is not None and (view.sums or output.scale is not None)
    on_the_chip = in_integers or view.half
    gives = SUMS if view.sums else output.dtype
    types = _types(grids, view, gives) if in_integers else "float/float"
    return NodeRow(
        str(node.name),
        target.unit if on_the_chip else "CPU",
        subgraph if on_the_chip else None,
        node.op_type if clamp is None else f"{node.op_type}+{clamp.op_type}",
        round(sums.quantized.cosine, DIGITS),
        round(sums.calibrated.cosine, DIGITS),
        round(max(_threshold(t) for t in grids), DIGITS) if in_integers and grids else None,
        "float16/float16" if view.half else types,
        distance(sums.calibrated),
        distance(sums.quantized),
        origin(node) if clamp is None else (*origin(node), *origin(clamp)),
    )


def _threshold(tensor: Tensor) -> float:
    """The largest magnitude of the grid: T, for a symmetric grid."""
    limits = np.iinfo(tensor.dtype)
    steps = max(limits.max - tensor.zero_point, min(tensor.zero_point - limits.min, limits.max))
    return float(steps * (tensor.scale or 0.0))


def _output(name: str, sums: TensorSums) -> OutputRow:
    return OutputRow(
        name,
        round(sums.quantized.cosine, DIGITS),
        round(sums.calibrated.cosine, DIGITS),
        distance(sums.calibrated),
        distance(sums.quantized),
    )
