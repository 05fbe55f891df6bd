"""Compares every node of the float graph with the same node calibrated and quantized.

Sums accumulate sample by sample (npumake.kernels.measure), so memory does not grow with samples.
Figures are rounded to DIGITS: the last bits of a float engine are not a result.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from npumake.bundle.program import SUMS, Program, Tensor
from npumake.custom.operators import NO_OPERATORS, Operators
from npumake.debug.compared import DIGITS, Comparison, NodeRow, OutputRow, distance
from npumake.debug.finite import source_of_nan
from npumake.debug.listed import listed, listing_of
from npumake.debug.twins import View, compared_nodes, tensor_of, views_of
from npumake.engine.exact import ExactSession
from npumake.engine.float_session import FloatSession, float_session
from npumake.engine.fusion import absorbed
from npumake.engine.lower import lowered
from npumake.engine.ort import Feeds
from npumake.engine.parallel import NUMPY, side_by_side
from npumake.errors import GraphError, StageError
from npumake.graph import (
    Graph,
    Node,
    annotations_of,
    is_float16,
    origin,
)
from npumake.kernels import affine
from npumake.kernels.measure import Agreement, agreements
from npumake.quant.precision.form import in_form
from npumake.quant.precision.int16_share import int16_share
from npumake.quant.precision.placement import subgraphs
from npumake.targets.onnx_limits import beyond_documented
from npumake.targets.target import Target


class _Sums(NamedTuple):
    """One tensor: float against calibrated, float against quantized."""

    calibrated: Agreement = Agreement()
    quantized: Agreement = Agreement()

    def plus(self, other: _Sums) -> _Sums:
        return _Sums(self.calibrated + other.calibrated, self.quantized + other.quantized)


class _Engines(NamedTuple):
    """The float model, the float model with Q/DQ, and the integer engine; the first two have the
    compared tensors as outputs."""

    real: FloatSession
    fake: FloatSession
    exact: ExactSession


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
    optimized_float = in_form(optimized_float, target)
    program = lowered(quantized, target.rounding, target.runnable)
    nodes = compared_nodes(optimized_float)
    views = views_of(optimized_float, calibrated, nodes, program)
    engines = _Engines(
        _watching(optimized_float, list(views), operators),
        _watching(calibrated, [view.calibrated for view in views.values()], operators),
        ExactSession(program, operators, 1, [view.program for view in views.values()]),
    )
    output_names = [str(value.name) for value in optimized_float.outputs]
    sums, count = _summed(engines, views, feeds)
    _refuse_nan(nodes, sums)
    unit = _in_integers(optimized_float, program) | _in_float16(optimized_float, calibrated)
    numbers = subgraphs(optimized_float, unit)
    node_tensors = ((node, tensor_of(node)) for node in nodes)
    rows = tuple(
        _row(node, sums[name], views[name], program, target, numbers.get(node))
        for node, name in node_tensors
    )
    outputs = tuple(_output(name, sums[name]) for name in output_names)
    notes = (*annotations_of(calibrated), *beyond_documented(optimized_float, target))
    listing = listing_of(optimized_float, target, rows, views, program)
    listed_rows = rows if listing is None else listed(listing, rows)
    own = () if listing is None else rows
    share = int16_share(quantized)
    return Comparison(target.name, count, listed_rows, outputs, notes, nodes=own, int16=share)


def _in_integers(graph: Graph, program: Program) -> set[Node]:
    """The nodes that the program runs on the unit, fused ones included."""
    left = {step.name for step in program.instructions if step.op == "onnx"}
    return {node for node in graph.nodes() if str(node.name) not in left}


def _in_float16(graph: Graph, calibrated: Graph) -> set[Node]:
    """The nodes that the unit computes in float16."""
    names = {str(node.name) for node in calibrated.nodes() if is_float16(node)}
    return {node for node in graph.nodes() if str(node.name) in names}


def _summed(
    engines: _Engines, views: Mapping[str, View], feeds: Iterable[Feeds]
) -> tuple[dict[str, _Sums], int]:
    """The agreement of each tensor over all feeds, and the number of feeds."""
    real, fake, exact = engines
    codes = [view.program for view in views.values()]
    grids = [exact.program.tensors[code] for code in codes]

    def compared(feed: Feeds) -> list[_Sums]:
        runs = real.run(None, feed), fake.run(None, feed), _run(exact, codes, feed)
        outputs = zip(*runs, strict=True)
        with NUMPY:
            return [
                _Sums(*agreements(a, (real_numbers(b, grid), real_numbers(c, grid))))
                for (a, b, c), grid in zip(outputs, grids, strict=True)
            ]

    sums = [_Sums()] * len(views)
    count = 0
    for sample_sums in side_by_side(compared, feeds):
        sums = [total.plus(sample_sum) for total, sample_sum in zip(sums, sample_sums, strict=True)]
        count += 1
    return dict(zip(views, sums, strict=True)), count


def _run(exact: ExactSession, names: list[str], feed: Feeds) -> list[np.ndarray]:
    """Raises StageError naming the node that produces NaN in the integer engine."""
    try:
        return exact.run(names, feed)
    except GraphError as error:
        node = source_of_nan(exact.program, feed, exact.operators)
        if node is None:
            raise
        raise not_a_number(node) from error


def not_a_number(node: str) -> StageError:
    hint = "rounding moves its input out of its domain: add a Clip in front of it in the model"
    return StageError("it produces NaN when quantized, but not in float", node, hint)


def _refuse_nan(nodes: Iterable[Node], sums: Mapping[str, _Sums]) -> None:
    """Raises StageError for the first node whose values cannot be compared."""
    for node in nodes:
        node_sums = sums[tensor_of(node)]
        if math.isnan(node_sums.calibrated.cosine) or math.isnan(node_sums.quantized.cosine):
            raise not_a_number(str(node.name))


def _watching(graph: Graph, names: list[str], operators: Operators) -> FloatSession:
    watched = graph.copy()
    watched.expose(names)
    return float_session(watched, operators)


def real_numbers(values: np.ndarray, tensor: Tensor) -> np.ndarray:
    """Dequantize values on the grid of `tensor`; floats are returned as they are."""
    if tensor.scale is None or values.dtype.kind == "f":
        return values
    return affine.dequantize(values, np.float32(tensor.scale), tensor.zero_point)


def _types(grids: list[Tensor], view: View, gives: str) -> str:
    """Input and output type of a node on the unit; data movement of int32 sums reads sums."""
    if grids:
        return f"{grids[0].dtype}/{gives}"
    return f"{SUMS}/{SUMS}" if view.sums else "float/float"


def _row(
    node: Node,
    sums: _Sums,
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


def _output(name: str, sums: _Sums) -> OutputRow:
    return OutputRow(
        name,
        round(sums.quantized.cosine, DIGITS),
        round(sums.calibrated.cosine, DIGITS),
        distance(sums.calibrated),
        distance(sums.quantized),
    )
