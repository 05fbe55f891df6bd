"""Fit: whether the grid of a tensor is the one that its numbers ask for.

    step       of the grid; of the one that just holds the numbers, with as many bits, step'
    reach      step / step': a grid four times too wide has 4
    outside    the share of the numbers that the grid cuts off
    noise      the mean square of what it loses of them
    room       that of the other: step'**2 / 12, or noise / reach**2 where that is less, as it is
               of numbers most of which are zero
    excess     1 - room / noise: the share that the other would not lose
    shift      the share of its codes that lie unused on one side, where as much is missing on the
               other: a wrong zero point; 0 of a grid with zero in the middle

No method of this tool makes a grid that is WIDE or SHIFTED, nor one that cuts off more than
OUTSIDE: kl stops there (calibration.thresholds), and the others long before. Where a node
has the grid of what it pools, moves or joins, that is not its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from npumake.debug.calibration_nodes import CalibrationNode, without
from npumake.debug.finite import source_of_infinite
from npumake.debug.sensitivity import ModelUnderTest
from npumake.debug.tensor_stats import TensorStats, seen
from npumake.debug.tensors import weight
from npumake.engine.float_session import float_session
from npumake.engine.grids import DQ, Q
from npumake.engine.parallel import NUMPY, side_by_side
from npumake.errors import GraphError
from npumake.graph import Graph, Node, Value, array, is_float, producer
from npumake.quant.calibration.output_headroom import with_headroom
from npumake.quant.calibration.thresholds import INT8_LEVELS
from npumake.quant.precision.placement import SAME_GRID_OPERATORS, source_tensor

WIDE = 2.5  # a grid of powers of two may reach twice as far as it has to
SHIFTED = 1 / 8
OUTSIDE = 1 / INT8_LEVELS
CUT = 0.8  # of its reach: other numbers than those it was made for may go a little further
CLIPPED = 0.5  # of the noise
SPARED = 1 - 1 / WIDE**2  # of the noise
GRID = frozenset({Q, DQ})
# What may well keep the grid that it reads; some files demand it.
KEEPING = SAME_GRID_OPERATORS | {"AveragePool", "Concat", "GlobalAveragePool", "ReduceMean"}


class Fit(NamedTuple):
    """Of a calibration node; `clipped` is the share of its noise that is clipping, `fresh` the node
    on the grid that just holds its numbers, or that is as the others are."""

    reaches: np.ndarray  # by channel where there is a scale for each
    clipped: float
    outside: float
    excess: float
    shift: float
    threshold: float
    fresh: CalibrationNode
    coarse: int | None = None  # the one channel that has too wide a grid
    odd: str = ""  # the method that chose all other grids, but not this one
    is_exact: bool = False  # told by the numbers that they were chosen for

    @property
    def reach(self) -> float:
        return float(np.median(self.reaches))

    @property
    def is_wide(self) -> bool:
        is_all = self.reach >= WIDE and self.excess > SPARED
        return is_all or self.coarse is not None

    @property
    def is_shifted(self) -> bool:
        return self.shift >= SHIFTED and self.excess > 0.0

    @property
    def is_clipped(self) -> bool:
        cut = self.clipped >= CLIPPED and self.excess > SPARED
        return not self.is_wide and (cut or self.is_shifted)

    @property
    def is_fault(self) -> bool:
        """Whether no method of this tool would have made it so."""
        is_cut = self.is_clipped and self.outside > OUTSIDE and self.reach <= CUT
        return self.is_wide or self.is_shifted or is_cut or self.odd != ""

    @property
    def is_certain(self) -> bool:
        """Whether it is one even where nothing is lost by it."""
        return self.is_shifted or (self.odd != "" and self.is_exact)

    @property
    def cause(self) -> str:
        """A remark, empty where the grid fits."""
        if self.coarse is not None and self.reach < WIDE:
            times = f"{self.reaches[self.coarse]:.4g} times as wide as its values ask for"
            return f"its grid is {times} in channel {self.coarse}: bits are unused"
        if self.is_wide:
            held = f"{self.fresh.threshold:.4g}"
            return f"its grid reaches {self.threshold:.4g}, its values {held}: bits are unused"
        if self.odd:
            others = f"{self.odd}, as for the others, {self.fresh.threshold:.4g}"
            return f"its grid reaches {self.threshold:.4g}, {others}: bits are unused"
        if self.is_shifted:
            return (
                f"its zero point is off: {self.shift:.0%} of its codes are unused, values clipped"
            )
        return f"values are clipped at {self.threshold:.4g}" if self.is_clipped else ""


def fits(patient: ModelUnderTest) -> dict[str, Fit]:
    """Of every calibration node with a grid of its own, over all samples in float, by its name.
    Raises GraphError."""
    values = patient.calibrated.values()
    nodes = [one for one in patient.nodes if not is_handed_on(values, one)]
    found = {
        one.name: _fit(one, seen(one, weight(values, one))) for one in nodes if one.kind == "weight"
    }
    plain = without(patient.calibrated)
    watched = [n for n in nodes if n.kind == "activation" and is_float(values[n.tensor])]
    real = plain.copy()
    real.expose(dict.fromkeys(one.tensor for one in watched))
    session = float_session(real, patient.operators)

    def looked(feed: object) -> list[TensorStats]:
        made = dict(zip(session.output_names, session.run(None, feed), strict=True))  # type: ignore[arg-type]
        with NUMPY:
            return [seen(one, made[one.tensor]) for one in watched]

    totals = _totals(side_by_side(looked, patient.samples))
    if not all(np.isfinite([*all_.low, *all_.high]).all() for all_ in totals):
        source = source_of_infinite(plain, patient.samples, patient.operators)
        assert source is not None
        raise GraphError(str(source), source.node, source.hint)
    totals = _as_sure(plain, watched, totals)
    return found | {one.name: _fit(one, all_) for one, all_ in zip(watched, totals, strict=True)}


def _as_sure(
    graph: Graph, nodes: Sequence[CalibrationNode], totals: Sequence[TensorStats]
) -> list[TensorStats]:
    """`totals`; a score comes as high as the grid has room for, as far as it may come."""
    values = graph.values()
    names = [str(source_tensor(values[one.tensor]).name) for one in nodes]
    pairs = zip(names, totals, strict=True)
    ranges = {name: (float(all_.low[0]), float(all_.high[0])) for name, all_ in pairs}
    more = with_headroom(graph, ranges)

    def sure(one: CalibrationNode, name: str, total: TensorStats) -> TensorStats:
        if name not in more or one.axis is not None:
            return total
        top = np.minimum(more[name][1], np.reshape(one.limits[1], -1))
        return total._replace(high=np.maximum(total.high, top))

    return list(map(sure, nodes, names, totals))


def is_handed_on(values: Mapping[str, Value], one: CalibrationNode) -> bool:
    """Whether the grid is that of what is pooled, moved or joined here, or of what it is joined
    to; of a graph of these values."""
    joined = [use.node for use in values[one.real].uses() if use.node.op_type == "Concat"]
    around = [use.node for join in joined for use in join.outputs[0].uses()]
    around += _before(values[one.tensor])
    around = [node for node in around if node.op_type in GRID and len(node.inputs) > 2]
    return any(
        _is_equal(node.inputs[1], one.scale) and _is_equal(node.inputs[2], one.zero_point)
        for node in around
    )


def _is_equal(value: Value | None, wanted: np.ndarray) -> bool:
    found = array(value)
    return found is not None and np.array_equal(found, wanted)


def _before(value: Value) -> list[Node]:
    """The Q and DQ before what makes the value, as far as grids may be kept, each once."""
    found: dict[Node, None] = {}
    seen, waiting = {value}, [value]
    while waiting:
        maker = producer(waiting.pop())
        if maker is None or maker.op_type not in KEEPING | GRID:
            continue
        if maker.op_type in GRID:
            found[maker] = None
        read = maker.inputs[:1] if maker.op_type in GRID else maker.inputs
        new = [each for each in reversed(read) if each is not None and each not in seen]
        seen.update(new)
        waiting += new
    return list(found)


def _totals(found: Iterable[list[TensorStats]]) -> list[TensorStats]:
    totals: list[TensorStats] = []
    for each in found:
        totals = [a.plus(b) for a, b in zip(totals, each, strict=True)] if totals else each
    return totals


def _fit(one: CalibrationNode, total: TensorStats) -> Fit:
    fresh = holding(one, total.low, total.high)
    step = np.reshape(fresh.scale, -1).astype(np.float64)  # of numbers that are all but zero, tiny
    reach = np.reshape(one.scale, -1) / step
    channels = len(total.low)
    lost, clipped = (float(np.sum(each)) / total.numbers for each in (total.lost, total.clipped))
    # By channel: those that are all but zero lose nothing, however wide their grids.
    rooms = np.minimum(step**2 / 12, total.lost / total.numbers / reach**2)
    room = float(np.sum(rooms))
    return Fit(
        reach,
        clipped / lost if lost else 0.0,
        float(np.sum(total.outside)) / (total.numbers * channels),
        1.0 - room / lost if lost else 0.0,
        _shift(one, total),
        one.threshold,
        fresh,
        _coarse(reach, total.lost / total.numbers, rooms),
    )


def _coarse(reaches: np.ndarray, lost: np.ndarray, rooms: np.ndarray) -> int | None:
    """The channel that loses most by a grid too wide, where others lose less on average: those
    that are all but zero may have wide ones, for the sake of their biases."""
    spared = lost - rooms
    is_wide = (reaches >= WIDE) & (spared > lost * SPARED) & (spared >= np.mean(lost))
    if len(reaches) == 1 or not np.any(is_wide):
        return None
    return int(np.argmax(np.where(is_wide, spared, -1.0)))


def _shift(one: CalibrationNode, total: TensorStats) -> float:
    (low,), (high,) = (np.reshape(limit, -1)[:1] for limit in one.limits)
    if one.axis is not None or -low <= high * 1.02 <= -low * 1.04:
        return 0.0
    below = (min(float(total.low[0]), 0.0) - low) / (high - low)
    above = (high - max(float(total.high[0]), 0.0)) / (high - low)
    return float(max(min(below, -above), min(-below, above), 0.0))


def holding(one: CalibrationNode, low: np.ndarray, high: np.ndarray) -> CalibrationNode:
    """On a grid that just holds low..high, by channel; where that is nothing, any will do."""
    limits, zero = np.iinfo(one.zero_point.dtype), np.reshape(one.zero_point, -1)
    low, high = np.minimum(low, 0.0), np.maximum(high, 0.0)
    if is_centred(one):
        step, zeros = np.maximum(-low, high) / (limits.max - _middle(one)), zero
    else:
        step = (high - low) / (int(limits.max) - int(limits.min))
        zeros = np.rint(limits.min - low / np.where(step > 0, step, 1.0)).astype(zero.dtype)
    scale = np.where(step > 0, step, np.reshape(one.scale, -1))
    return one._replace(
        scale=scale.reshape(one.scale.shape).astype(one.scale.dtype),
        zero_point=zeros.reshape(one.zero_point.shape),
    )


def is_centred(one: CalibrationNode) -> bool:
    """Whether zero is the middle of its grid."""
    return bool(np.all(one.zero_point == _middle(one)))


def _middle(one: CalibrationNode) -> int:
    limits = np.iinfo(one.zero_point.dtype)
    return (int(limits.max) + int(limits.min) + 1) // 2
