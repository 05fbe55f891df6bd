"""How well the range of a grid fits the values of its tensor.

    step       scale of the grid; step' that of the min/max grid with as many bits
    reach      step / step': 4 for a grid four times too wide
    outside    share of the values that the grid clips
    noise      mean square of the quantization error
    room       noise of the min/max grid: step'**2 / 12, or noise / reach**2 if that is less, as
               for tensors that are mostly zero
    excess     1 - room / noise: the share of the noise that the min/max grid would avoid
    shift      share of the quantized values unused on one side while as many are missing on the
               other: a wrong zero point; 0 for a symmetric grid

No calibration method here produces a reach above WIDE_REACH, a shift above MIN_SHIFT, or clips
more than MAX_OUTSIDE, where kl stops (calibration.thresholds). A grid shared with the tensor that
a node pools, moves or concatenates is not judged.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np

from npumake.debug.calibration_nodes import CalibrationNode
from npumake.debug.finite import source_of_infinite
from npumake.debug.sensitivity import ModelUnderTest
from npumake.debug.tensor_stats import TensorStats, stats_of
from npumake.debug.tensors import weight
from npumake.engine.ort import Feeds
from npumake.engine.parallel import NUMPY, side_by_side
from npumake.engine.partial.opened import of_tensors
from npumake.errors import GraphError
from npumake.graph import Graph, Node, Value, is_float, producer
from npumake.graph.qdq import QDQ_OPERATORS, grid_of, is_qdq
from npumake.quant.calibration.output_headroom import with_headroom
from npumake.quant.calibration.thresholds import INT8_LEVELS
from npumake.quant.precision.placement import SAME_GRID_OPERATORS, source_tensor

WIDE_REACH = 2.5  # a power-of-two scale may reach twice as far as needed
MIN_SHIFT = 1 / 8
MAX_OUTSIDE = 1 / INT8_LEVELS
MAX_CUT_REACH = 0.8  # reach: other samples than the calibration's may go a little further
MIN_CLIPPED_NOISE = 0.5  # share of the noise
MIN_EXCESS = 1 - 1 / WIDE_REACH**2  # share of the noise
# Operators that may keep their input's grid; some formats require it.
KEEPING = SAME_GRID_OPERATORS | {"AveragePool", "Concat", "GlobalAveragePool", "ReduceMean"}


Kind = Literal["wide", "odd", "shifted", "clipped", ""]


class Fit(NamedTuple):
    """The fit of one calibration node. `clipped` is the share of its noise due to clipping,
    `fresh` the node with a fitting grid: min/max, or by the inferred method."""

    reaches: np.ndarray  # per channel for per-channel scales
    clipped: float
    outside: float
    excess: float
    shift: float
    threshold: float
    fresh: CalibrationNode
    coarse: int | None = None  # the channel with too wide a grid
    odd: str = ""  # the method that all other scales follow
    is_exact: bool = False  # measured on the values that the scales were derived from

    @property
    def reach(self) -> float:
        return float(np.median(self.reaches))

    @property
    def is_wide(self) -> bool:
        is_all = self.reach >= WIDE_REACH and self.excess > MIN_EXCESS
        return is_all or self.coarse is not None

    @property
    def is_shifted(self) -> bool:
        return self.shift >= MIN_SHIFT and self.excess > 0.0

    @property
    def is_clipped(self) -> bool:
        cut = self.clipped >= MIN_CLIPPED_NOISE and self.excess > MIN_EXCESS
        return not self.is_wide and (cut or self.is_shifted)

    @property
    def is_fault(self) -> bool:
        """Whether no calibration method produces this grid."""
        is_cut = self.is_clipped and self.outside > MAX_OUTSIDE and self.reach <= MAX_CUT_REACH
        return self.is_wide or self.is_shifted or is_cut or self.odd != ""

    @property
    def is_certain(self) -> bool:
        """Whether it is a fault even if it costs no accuracy."""
        return self.is_shifted or (self.odd != "" and self.is_exact)

    @property
    def kind(self) -> Kind:
        """The kind of misfit; empty if the grid fits."""
        if self.is_wide:
            return "wide"
        if self.odd:
            return "odd"
        return "shifted" if self.is_shifted else "clipped" if self.is_clipped else ""

    @property
    def cause(self) -> str:
        """A remark; empty if the grid fits."""
        if self.coarse is not None and self.reach < WIDE_REACH:
            times = f"{self.reaches[self.coarse]:.4g} times as wide as its values need"
            return f"its range is {times} in channel {self.coarse}: bits are unused"
        if self.is_wide:
            needed = f"{self.fresh.threshold:.4g}"
            ends = f"{self.threshold:.4g}, its values at {needed}"
            return f"its range ends at {ends}: bits are unused"
        if self.odd:
            others = f"`{self.odd}`, which all others follow, gives {self.fresh.threshold:.4g}"
            return f"its range ends at {self.threshold:.4g}; {others}: bits are unused"
        if self.is_shifted:
            unused = f"{self.shift:.0%} of its range is unused"
            return f"its zero point is off: {unused}, values are clipped"
        return f"values are clipped at {self.threshold:.4g}" if self.is_clipped else ""


def fits(model: ModelUnderTest, names: Collection[str] | None = None) -> dict[str, Fit]:
    """The fit of every calibration node with a grid of its own, or of those of `names`, by name,
    over all samples in float. Raises GraphError for values that are not finite."""
    values = model.calibrated.values()
    candidates = (node for node in model.nodes if names is None or node.name in names)
    nodes = [node for node in candidates if not shares_grid(values, node)]
    weights = {
        node.name: _fit(node, stats_of(node, weight(values, node)))
        for node in nodes
        if node.kind == "weight"
    }
    plain = model.real
    watched = [n for n in nodes if n.kind == "activation" and is_float(values[n.tensor])]
    part = of_tensors(plain, dict.fromkeys(n.tensor for n in watched), model.operators)

    def sample_stats(feed: Feeds) -> list[TensorStats]:
        outputs = part.run(feed)
        with NUMPY:
            return [stats_of(node, outputs[node.tensor]) for node in watched]

    totals = _totals(side_by_side(sample_stats, model.samples))
    if not all(np.isfinite([*all_.low, *all_.high]).all() for all_ in totals):
        source = source_of_infinite(plain, model.samples, model.operators)
        assert source is not None
        raise GraphError(str(source), source.node, source.hint)
    totals = _with_headroom(plain, watched, totals)
    return weights | {
        node.name: _fit(node, all_) for node, all_ in zip(watched, totals, strict=True)
    }


def _with_headroom(
    graph: Graph, nodes: Sequence[CalibrationNode], totals: Sequence[TensorStats]
) -> list[TensorStats]:
    """`totals`, with the headroom that calibration gives the outputs of Sigmoid and Softmax."""
    values = graph.values()
    names = [str(source_tensor(values[node.tensor]).name) for node in nodes]
    pairs = zip(names, totals, strict=True)
    ranges = {name: (float(all_.low[0]), float(all_.high[0])) for name, all_ in pairs}
    headroom = with_headroom(graph, ranges)

    def sure(node: CalibrationNode, name: str, total: TensorStats) -> TensorStats:
        if name not in headroom or node.axis is not None:
            return total
        top = np.minimum(headroom[name][1], np.reshape(node.limits[1], -1))
        return total._replace(high=np.maximum(total.high, top))

    return list(map(sure, nodes, names, totals))


def shares_grid(values: Mapping[str, Value], place: CalibrationNode) -> bool:
    """Whether a neighbor has the same grid: the input of a pooling, data movement or Concat, or
    the tensor it is concatenated with. `values` are those of the graph, by name."""
    joined = [use.node for use in values[place.real].uses() if use.node.op_type == "Concat"]
    around = [use.node for join in joined for use in join.outputs[0].uses()]
    around += _before(values[place.tensor])
    grids = [grid for node in around if (grid := grid_of(node)) is not None]
    return any(
        np.array_equal(grid.scale, place.scale)
        and np.array_equal(grid.zero_point, place.zero_point)
        for grid in grids
    )


def _before(value: Value) -> list[Node]:
    """The Q and DQ nodes that the value depends on through KEEPING operators, each once."""
    nodes: dict[Node, None] = {}
    visited, waiting = {value}, [value]
    while waiting:
        maker = producer(waiting.pop())
        if maker is None or maker.op_type not in (*KEEPING, *QDQ_OPERATORS):
            continue
        if is_qdq(maker):
            nodes[maker] = None
        read = maker.inputs[:1] if is_qdq(maker) else maker.inputs
        new = [tensor for tensor in reversed(read) if tensor is not None and tensor not in visited]
        visited.update(new)
        waiting += new
    return list(nodes)


def _totals(samples: Iterable[list[TensorStats]]) -> list[TensorStats]:
    totals: list[TensorStats] = []
    for sample in samples:
        totals = [a.plus(b) for a, b in zip(totals, sample, strict=True)] if totals else sample
    return totals


def _fit(node: CalibrationNode, total: TensorStats) -> Fit:
    fresh = fitted_grid(node, total.low, total.high)
    step = np.reshape(fresh.scale, -1).astype(np.float64)  # tiny for values close to zero
    reach = np.reshape(node.scale, -1) / step
    channels = len(total.low)
    loss, clipped = (
        float(np.sum(figures)) / total.numbers for figures in (total.squared_error, total.clipped)
    )
    # Per channel: channels close to zero lose nothing, however wide their grids.
    rooms = np.minimum(step**2 / 12, total.squared_error / total.numbers / reach**2)
    room = float(np.sum(rooms))
    return Fit(
        reach,
        clipped / loss if loss else 0.0,
        float(np.sum(total.outside)) / (total.numbers * channels),
        1.0 - room / loss if loss else 0.0,
        _shift(node, total),
        node.threshold,
        fresh,
        _coarse(reach, total.squared_error / total.numbers, rooms),
    )


def _coarse(reaches: np.ndarray, losses: np.ndarray, rooms: np.ndarray) -> int | None:
    """The channel that loses most by too wide a grid, if above the mean loss. Channels close to
    zero may have wide grids, set for their biases."""
    spared = losses - rooms
    is_wide = (reaches >= WIDE_REACH) & (spared > losses * MIN_EXCESS) & (spared >= np.mean(losses))
    if len(reaches) == 1 or not np.any(is_wide):
        return None
    return int(np.argmax(np.where(is_wide, spared, -1.0)))


def _shift(node: CalibrationNode, total: TensorStats) -> float:
    (low,), (high,) = (np.reshape(limit, -1)[:1] for limit in node.limits)
    if node.axis is not None or -low <= high * 1.02 <= -low * 1.04:
        return 0.0
    below = (min(float(total.low[0]), 0.0) - low) / (high - low)
    above = (high - max(float(total.high[0]), 0.0)) / (high - low)
    return float(max(min(below, -above), min(-below, above), 0.0))


def fitted_grid(node: CalibrationNode, low: np.ndarray, high: np.ndarray) -> CalibrationNode:
    """The node with the min/max grid of low..high, per channel; an empty range keeps its grid."""
    limits, zero = np.iinfo(node.zero_point.dtype), np.reshape(node.zero_point, -1)
    low, high = np.minimum(low, 0.0), np.maximum(high, 0.0)
    if is_centred(node):
        step, zeros = np.maximum(-low, high) / (limits.max - _middle(node)), zero
    else:
        step = (high - low) / (int(limits.max) - int(limits.min))
        zeros = np.rint(limits.min - low / np.where(step > 0, step, 1.0)).astype(zero.dtype)
    scale = np.where(step > 0, step, np.reshape(node.scale, -1))
    return node._replace(
        scale=scale.reshape(node.scale.shape).astype(node.scale.dtype),
        zero_point=zeros.reshape(node.zero_point.shape),
    )


def is_centred(node: CalibrationNode) -> bool:
    """Whether the grid is symmetric around zero."""
    return bool(np.all(node.zero_point == _middle(node)))


def _middle(node: CalibrationNode) -> int:
    limits = np.iinfo(node.zero_point.dtype)
    return (int(limits.max) + int(limits.min) + 1) // 2
