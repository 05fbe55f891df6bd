"""Every node of the float graph against the same node calibrated and quantized.

Sums are taken sample by sample (pipeline.kernels.measure), so memory does not grow with samples,
and rounded to DIGITS when they are written: the last bits of a float engine are not a result.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

from pipeline import digest
from pipeline.bundle.program import Program, Tensor
from pipeline.custom.operators import NO_OPERATORS, Operators
from pipeline.engine.fusion import absorbed, result
from pipeline.engine.lower import lowered
from pipeline.engine.mixed import FloatSession, float_session
from pipeline.engine.ort import Feeds
from pipeline.engine.parallel import side_by_side
from pipeline.engine.reference import ReferenceSession
from pipeline.errors import CacheError
from pipeline.graph import Graph, Node, is_float
from pipeline.kernels import affine
from pipeline.kernels.measure import Agreement, agreement
from pipeline.quant.placement import activations, on_chip, subgraphs
from pipeline.targets.target import Target

DIGITS = 6


@dataclass(frozen=True)
class Row:
    """A node: where it runs, the threshold of what it reads, and the cosine of what it makes."""

    node: str
    on: str
    subgraph: int | None
    type: str
    cosine: float
    calibrated_cosine: float
    threshold: float | None
    dtype: str


@dataclass(frozen=True)
class Output:
    """A model output, quantized against float: norms of the difference over all samples."""

    name: str
    cosine: float
    calibrated_cosine: float
    l1: float
    l2: float
    chebyshev: float


@dataclass(frozen=True)
class Comparison:
    target: str
    samples: int
    rows: tuple[Row, ...]
    outputs: tuple[Output, ...]

    suffix: ClassVar[str] = ".json"

    def save(self, path: Path) -> None:
        path.write_text(json.dumps(digest.plain(self), indent=1) + "\n")

    @classmethod
    def load(cls, path: Path) -> Comparison:
        """Raises CacheError for a file that `save` did not write."""
        try:
            document = json.loads(path.read_bytes())
            rows = tuple(Row(**row) for row in document["rows"])
            outputs = tuple(Output(**output) for output in document["outputs"])
            return cls(document["target"], document["samples"], rows, outputs)
        except (ValueError, KeyError, TypeError) as error:
            raise CacheError(f"not a comparison: {error}", str(path)) from error


@dataclass(frozen=True)
class _Pair:
    """What is summed up for one tensor: float against calibrated, float against quantized."""

    calibrated: Agreement
    quantized: Agreement

    def __add__(self, other: _Pair) -> _Pair:
        return _Pair(self.calibrated + other.calibrated, self.quantized + other.quantized)


class _Engines(NamedTuple):
    """The float model, the same with Q/DQ, and the exact integers; the first two give the watched
    tensors as their outputs."""

    real: FloatSession
    fake: FloatSession
    exact: ReferenceSession


def compare(
    optimized_float: Graph,
    calibrated: Graph,
    quantized: Graph,
    feeds: Iterable[Feeds],
    target: Target,
    operators: Operators = NO_OPERATORS,
) -> Comparison:
    """Compare over `feeds`, each run once by each of the three engines. Raises GraphError."""
    watched = {str(result(node).name): node for node in _nodes(optimized_float)}
    program = lowered(quantized, target.rounding, target.operators)
    names, known = list(watched), calibrated.values()
    engines = _Engines(
        _watching(optimized_float, names, operators),
        _watching(calibrated, [_dequantized(name, known) for name in names], operators),
        ReferenceSession(program, operators),
    )
    sums, count = _summed(engines, names, feeds)
    chip = on_chip(optimized_float, target)
    numbers = subgraphs(optimized_float, chip)
    rows = tuple(
        _row(node, sums[name], program, target, numbers.get(node)) for name, node in watched.items()
    )
    outputs = tuple(_output(str(v.name), sums[str(v.name)]) for v in optimized_float.outputs)
    return Comparison(target.name, count, rows, outputs)


def _nodes(graph: Graph) -> list[Node]:
    """The nodes that make a float tensor of their own: an absorbed clamp counts with its node."""
    clamps = {absorbed(node) for node in graph.nodes()}
    return [n for n in graph.nodes() if n not in clamps and is_float(result(n))]


def _summed(
    engines: _Engines, names: list[str], feeds: Iterable[Feeds]
) -> tuple[dict[str, _Pair], int]:
    """The agreement of each named tensor over all feeds, and how many feeds there were."""
    real, fake, exact = engines
    tensors = exact.program.tensors
    codes = [_codes(name, tensors) for name in names]
    grids = [tensors[code] for code in codes]

    def compared(feed: Feeds) -> list[_Pair]:
        made = zip(real.run(None, feed), fake.run(None, feed), exact.run(codes, feed), strict=True)
        return [
            _Pair(agreement(a, b), agreement(a, _real(c, grid)))
            for (a, b, c), grid in zip(made, grids, strict=True)
        ]

    sums = [_Pair(Agreement(), Agreement()) for _ in names]
    count = 0
    for pairs in side_by_side(compared, feeds):
        sums = [total + pair for total, pair in zip(sums, pairs, strict=True)]
        count += 1
    return dict(zip(names, sums, strict=True)), count


def _watching(graph: Graph, names: list[str], operators: Operators) -> FloatSession:
    watched = graph.copy()
    watched.expose(names)
    return float_session(watched, operators)


def _dequantized(name: str, known: Mapping[str, Any]) -> str:
    """The tensor as its readers see it. A model output is called what it always was."""
    dequantized = f"{name}_dequantized"
    return dequantized if dequantized in known else name


def _codes(name: str, known: Mapping[str, Any]) -> str:
    codes = f"{name}_quantized"
    return codes if codes in known else name


def _real(values: np.ndarray, tensor: Tensor) -> np.ndarray:
    if tensor.scale is None:
        return values
    return affine.dequantize(values, np.float32(tensor.scale), tensor.zero_point)


def _row(node: Node, pair: _Pair, program: Program, target: Target, subgraph: int | None) -> Row:
    clamp = absorbed(node)
    read = [program.tensors.get(f"{value.name}_quantized") for value in activations(node)]
    grids = [tensor for tensor in read if tensor is not None]
    made = program.tensors.get(f"{result(node).name}_quantized")
    on_the_chip = subgraph is not None
    return Row(
        str(node.name),
        target.unit if on_the_chip else "CPU",
        subgraph,
        node.op_type if clamp is None else f"{node.op_type}+{clamp.op_type}",
        round(pair.quantized.cosine, DIGITS),
        round(pair.calibrated.cosine, DIGITS),
        round(max(_threshold(t) for t in grids), DIGITS) if on_the_chip and grids else None,
        f"{grids[0].dtype}/{made.dtype}" if on_the_chip and grids and made else "float/float",
    )


def _threshold(tensor: Tensor) -> float:
    """The largest magnitude the grid holds: T, for a symmetric grid."""
    limits = np.iinfo(tensor.dtype)
    steps = max(limits.max - tensor.zero_point, min(tensor.zero_point - limits.min, limits.max))
    return float(steps * (tensor.scale or 0.0))


def _output(name: str, pair: _Pair) -> Output:
    exact = pair.quantized
    return Output(
        name,
        round(exact.cosine, DIGITS),
        round(pair.calibrated.cosine, DIGITS),
        round(exact.l1, DIGITS),
        round(exact.l2, DIGITS),
        round(exact.chebyshev, DIGITS),
    )
