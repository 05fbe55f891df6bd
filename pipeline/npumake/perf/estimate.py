"""Latency estimate: fitted if the target has a fitted model, else a roofline (Williams, 2009).

    fitted      npumake.perf.fitted, with an interval
    roofline    t_layer = max(macs / P, bytes / B)      t = sum of t_layer
    at least    max(sum of macs / P, sum of bytes / B) of each subgraph

P is the peak of the cores in use, times the `int16_rate` of the target where a layer reads int16, B
the DDR bandwidth. If one is not published, the roofline is None and `at_least` uses only the other.
Nodes on the CPU do not count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from npumake.bundle.archive import DDR, Bundle
from npumake.bundle.memory import MemoryPlan, planned, tensor_bytes
from npumake.bundle.program import Program
from npumake.engine.program_checks import validate
from npumake.engine.subgraphs import cpu_nodes
from npumake.errors import GraphError
from npumake.graph import inside
from npumake.perf.assumed import assumptions, latency_text
from npumake.perf.fitted import seconds
from npumake.perf.layers import LayerCost, in_int8, layers_of
from npumake.targets.cost import Cost, Fitted
from npumake.targets.target import Target

MAX_BYTES = 1 << 50


@dataclass(frozen=True)
class Roof:
    """Peak rates per second: multiply-accumulates of the cores in use, and DDR bytes; None if not
    published."""

    macs: float | None
    ddr: float | None

    def time(self, layer: LayerCost) -> float | None:
        """Seconds of a layer; None if a rate is not published."""
        if self.macs is None or self.ddr is None:
            return None
        return max(layer.macs / self.macs, layer.moved / self.ddr)

    def at_least(self, layers: Sequence[LayerCost]) -> float:
        """A lower bound in seconds for a subgraph, from the published rates."""
        computing = sum(layer.macs for layer in layers) / self.macs if self.macs else 0.0
        moving = sum(layer.moved for layer in layers) / self.ddr if self.ddr else 0.0
        return max(computing, moving)


@dataclass(frozen=True)
class Subgraph:
    """Consecutive layers on the unit; seconds, and bytes per frame."""

    name: str
    layers: tuple[LayerCost, ...]
    times: tuple[float | None, ...]
    at_least: float
    calls: int | None  # function calls, if `max_time_per_fc` limits their time

    @property
    def latency(self) -> float | None:
        return summed(self.times)

    @property
    def ops(self) -> int:
        return sum(layer.ops for layer in self.layers)

    @property
    def loaded(self) -> int:
        return sum(layer.loaded for layer in self.layers)

    @property
    def stored(self) -> int:
        return sum(layer.stored for layer in self.layers)


@dataclass(frozen=True)
class Estimate:
    """The estimate of one frame: seconds and bytes."""

    name: str
    target: str
    unit: str
    march: str | None
    cores: int
    subgraphs: tuple[Subgraph, ...]
    on_cpu: tuple[str, ...]  # the nodes, which are not in the estimate
    memory: MemoryPlan
    assumptions: tuple[str, ...]
    debug: bool
    fitted: Fitted | None = None

    @property
    def latency(self) -> float | None:
        """Seconds; None if a rate is not published or nothing runs on the unit."""
        return summed(part.latency for part in self.subgraphs) if self.subgraphs else None

    @property
    def at_least(self) -> float:
        return sum(part.at_least for part in self.subgraphs)

    @property
    def interval(self) -> tuple[float, float] | None:
        """The interval of the latency in seconds; None without a fitted model."""
        return None if self.latency is None else between(self.latency, self.fitted)

    @property
    def extrapolated(self) -> bool:
        """Whether the latency is outside the range that the estimate was fitted on."""
        if self.fitted is None or self.latency is None:
            return False
        return self.fitted.extrapolates(self.latency)

    @property
    def on_board(self) -> float | None:
        """Seconds of a run on the board, one thread; None without a fitted model."""
        if self.fitted is None or self.latency is None:
            return None
        return self.latency + self.fitted.board

    @property
    def moved_interval(self) -> tuple[int, int] | None:
        """The interval of the DDR bytes per frame; None without a fitted model."""
        if self.fitted is None:
            return None
        low, high = ((self.loaded + self.stored) * factor for factor in self.fitted.bytes)
        return round(low), round(high)

    @property
    def fps(self) -> float | None:
        return 1.0 / self.latency if self.latency else None

    @property
    def loaded(self) -> int:
        return sum(part.loaded for part in self.subgraphs)

    @property
    def stored(self) -> int:
        return sum(part.stored for part in self.subgraphs)

    @property
    def ops(self) -> int:
        return sum(part.ops for part in self.subgraphs)


def latency_of(estimate: Estimate) -> str:
    """The latency as text."""
    return latency_text(
        estimate.latency, estimate.at_least, estimate.interval, estimate.extrapolated
    )


def estimate_bundle(
    name: str, bundle: Bundle, target: Target, ddr: float | None = None
) -> Estimate:
    """The estimate of a bundle. `ddr` overrides the DDR bandwidth, in bytes per second. Raises
    GraphError for an invalid program."""
    _refuse_unspeakable(name, bundle.program)
    validate(bundle.program)
    return _estimate(name, bundle, target, ddr)


def _refuse_unspeakable(name: str, program: Program) -> None:
    """Raises GraphError for names that are not text and for impossible sizes."""
    names = (*program.tensors, *(step.name for step in program.instructions))
    if any("\ud800" <= character <= "\udfff" for character in "".join(names)):
        raise GraphError("a name in it is not text", name)
    if sum(map(tensor_bytes, program.tensors.values())) > MAX_BYTES:
        raise GraphError("tensors larger than any memory", name)


def _setting(name: str, bundle: Bundle, key: str, usual: int) -> int:
    """A setting of section `compile`. Raises GraphError unless it is a whole number."""
    value = bundle.settings.get(key, usual)
    if type(value) is not int or not 0 <= value < MAX_BYTES:
        raise GraphError(f"`{key}` in its manifest is {value!r}, not a whole number", name)
    return value


def _estimate(name: str, bundle: Bundle, target: Target, ddr: float | None) -> Estimate:
    ddr = ddr or board_ddr(bundle, name)
    cost = with_ddr(target.cost, ddr)
    settings, program = bundle.settings, bundle.program
    cores = _setting(name, bundle, "core_num", 1)
    limit = _setting(name, bundle, "max_time_per_fc", 0)
    layers = layers_of(program, cost.on_chip_bytes, nv12_inputs(bundle))
    return Estimate(
        name,
        target.name,
        target.unit,
        target.march,
        cores,
        tuple(_subgraph(name, part, cost, cores, limit) for part in parts_of(layers)),
        tuple(_on_cpu(program)),
        planned(program),
        tuple(assumptions(program, cost, cores, has_own_ddr=ddr is not None)),
        bool(settings.get("debug", False)),
        cost.fitted,
    )


def board_ddr(bundle: Bundle, name: str = "") -> float | None:
    """The DDR bandwidth that the project's `cost.ddr` gives, in bytes per second; None without it.
    Raises GraphError unless it is a positive number."""
    value = bundle.settings.get(DDR)
    if value is None:
        return None
    if type(value) not in (int, float) or not 0 < value < MAX_BYTES:
        raise GraphError(f"`{DDR}` in its manifest is {value!r}, not a number of GB/s", name)
    return float(value) * 1e9


def with_ddr(cost: Cost, ddr: float | None) -> Cost:
    """The figures with another DDR bandwidth, in bytes per second; None keeps the published."""
    if ddr is None:
        return cost
    fitted = None if cost.fitted is None else replace(cost.fitted, ddr=ddr)
    return replace(cost, ddr=ddr, fitted=fitted)


def nv12_inputs(bundle: Bundle) -> frozenset[str]:
    """The NV12 inputs: the camera delivers them in half the bytes that the program reads."""
    inputs = bundle.provenance.get("inputs")
    by_name = inputs.items() if isinstance(inputs, Mapping) else ()
    return frozenset(
        name
        for name, settings in by_name
        if isinstance(settings, Mapping) and settings.get("fed_type") == "nv12"
    )


def _on_cpu(program: Program) -> Iterator[str]:
    """The names of the CPU's nodes, each before the nodes in its bodies."""
    for node in cpu_nodes(program):
        yield str(node.name)
        yield from (name for name, _ in inside(node))


def roof_of(cost: Cost, core_num: int) -> Roof:
    share = min(core_num, cost.cores) / cost.cores
    return Roof(None if cost.macs is None else cost.macs * share, cost.ddr)


def parts_of(layers: Sequence[LayerCost]) -> list[tuple[LayerCost, ...]]:
    """The layers grouped by subgraph."""
    numbered = sorted(layers, key=lambda layer: layer.subgraph)
    return [tuple(group) for _, group in groupby(numbered, lambda layer: layer.subgraph)]


def times_of(layers: Sequence[LayerCost], cost: Cost, cores: int) -> tuple[float | None, ...]:
    """Seconds of each layer of a subgraph; None if not published."""
    layers = in_int8(layers, cost.int16_rate)
    if cost.fitted is not None:
        return seconds(layers, cost.fitted)
    return tuple(map(roof_of(cost, cores).time, layers))


def bound_of(layers: Sequence[LayerCost], cost: Cost, cores: int) -> float:
    """A lower bound in seconds for a subgraph."""
    return roof_of(cost, cores).at_least(in_int8(layers, cost.int16_rate))


def between(latency: float, fitted: Fitted | None) -> tuple[float, float] | None:
    if fitted is None:
        return None
    low, high = fitted.latency
    return latency * low, latency * high


def _subgraph(
    name: str, layers: tuple[LayerCost, ...], cost: Cost, cores: int, limit: int
) -> Subgraph:
    times = times_of(layers, cost, cores)
    numbers = [time for time in times if time is not None]
    calls = function_calls(numbers, limit * 1e-6) if limit and len(numbers) == len(times) else None
    subgraph_name = f"{name}_subgraph_{layers[0].subgraph}"
    return Subgraph(subgraph_name, layers, times, bound_of(layers, cost, cores), calls)


def function_calls(times: Iterable[float], limit: float) -> int:
    """The number of function calls of whole layers, each within `limit` seconds unless a single
    layer takes longer."""
    calls, elapsed = 0, limit
    for time in times:
        if calls == 0 or elapsed + time > limit:
            calls, elapsed = calls + 1, 0.0
        elapsed += time
    return calls


def summed(times: Iterable[float | None]) -> float | None:
    """The sum; None if any time is unknown."""
    values = list(times)
    numbers = [time for time in values if time is not None]
    return sum(numbers) if len(numbers) == len(values) else None
