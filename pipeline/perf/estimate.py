"""The estimate: a roofline over the layers of each subgraph.

    t_layer = max(macs / P, bytes / B)      t = sum of t_layer      FPS = 1000 / t in ms

P is the peak of the cores that the model runs on, B the bandwidth of the DDR. Where the vendor does
not publish one, t is None and `at_least` is what the other alone takes. The CPU is not in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby

from pipeline.bundle.archive import Bundle
from pipeline.bundle.memory import Memory, planned, tensor_bytes
from pipeline.bundle.program import Program
from pipeline.engine.subgraphs import cpu_nodes
from pipeline.engine.validated import validate
from pipeline.errors import GraphError
from pipeline.graph import inside
from pipeline.perf.layers import Layer, layers_of
from pipeline.targets.target import Cost, Target

MOST_BYTES = 1 << 50


@dataclass(frozen=True)
class Roof:
    """Per second: multiply-accumulates of the cores in use, and bytes. None: not published."""

    macs: float | None
    ddr: float | None

    def time(self, layer: Layer) -> float | None:
        """Seconds of a layer."""
        if self.macs is None or self.ddr is None:
            return None
        return max(layer.macs / self.macs, layer.moved / self.ddr)

    def at_least(self, layer: Layer) -> float:
        """Seconds that what is published allows at best."""
        computing = layer.macs / self.macs if self.macs else 0.0
        return max(computing, layer.moved / self.ddr if self.ddr else 0.0)


@dataclass(frozen=True)
class Subgraph:
    """Layers that run on the unit one after the other; seconds, bytes per frame."""

    name: str
    layers: tuple[Layer, ...]
    times: tuple[float | None, ...]
    at_least: float
    calls: int | None  # function calls, where `max_time_per_fc` limits one

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
    """Of one frame."""

    name: str
    target: str
    unit: str
    march: str | None
    cores: int
    subgraphs: tuple[Subgraph, ...]
    on_cpu: tuple[str, ...]  # the nodes, which are not in the estimate
    memory: Memory
    assumptions: tuple[str, ...]
    debug: bool

    @property
    def latency(self) -> float | None:
        """Seconds; None where something is not published, or nothing runs on the unit."""
        return summed(part.latency for part in self.subgraphs) if self.subgraphs else None

    @property
    def at_least(self) -> float:
        return sum(part.at_least for part in self.subgraphs)

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


def estimated(name: str, bundle: Bundle, target: Target, ddr: float | None = None) -> Estimate:
    """Of a bundle called `name`. `ddr` is a bandwidth that is known otherwise, in bytes per
    second. Raises GraphError for a stranger's program that no kernel would take."""
    _refuse_unspeakable(name, bundle.program)
    validate(bundle.program)
    return _estimated(name, bundle, target, ddr)


def _refuse_unspeakable(name: str, program: Program) -> None:
    """Raises GraphError for names that no page can hold, and sizes that no chip has."""
    names = (*program.tensors, *(step.name for step in program.instructions))
    if any("\ud800" <= character <= "\udfff" for character in "".join(names)):
        raise GraphError("a name in it is no text", name)
    if sum(map(tensor_bytes, program.tensors.values())) > MOST_BYTES:
        raise GraphError("tensors larger than any memory", name)


def _setting(name: str, bundle: Bundle, key: str, usual: int) -> int:
    """Of section `compile`. Raises GraphError for what is no whole number."""
    given = bundle.settings.get(key, usual)
    if type(given) is not int or not 0 <= given < MOST_BYTES:
        raise GraphError(f"`{key}` in its manifest is {given!r}, not a whole number", name)
    return given


def _estimated(name: str, bundle: Bundle, target: Target, ddr: float | None) -> Estimate:
    cost = target.cost if ddr is None else replace(target.cost, ddr=ddr)
    settings, program = bundle.settings, bundle.program
    cores = _setting(name, bundle, "core_num", 1)
    limit = _setting(name, bundle, "max_time_per_fc", 0)
    roof, layers = roof_of(cost, cores), layers_of(program, cost.on_chip)
    numbered = sorted(layers, key=lambda layer: layer.subgraph)
    parts = [tuple(group) for _, group in groupby(numbered, lambda layer: layer.subgraph)]
    return Estimate(
        name,
        target.name,
        target.unit,
        target.march,
        cores,
        tuple(_subgraph(name, part, roof, limit) for part in parts),
        tuple(_on_cpu(program)),
        planned(program),
        tuple(assumptions(program, cost, cores, given=ddr is not None)),
        bool(settings.get("debug", False)),
    )


def _on_cpu(program: Program) -> Iterator[str]:
    """The nodes, each in front of those in its bodies."""
    for node in cpu_nodes(program):
        yield str(node.name)
        yield from (name for name, _ in inside(node))


def roof_of(cost: Cost, core_num: int) -> Roof:
    share = min(core_num, cost.cores) / cost.cores
    return Roof(None if cost.macs is None else cost.macs * share, cost.ddr)


def _subgraph(name: str, layers: tuple[Layer, ...], roof: Roof, limit: int) -> Subgraph:
    times = tuple(map(roof.time, layers))
    known = [time for time in times if time is not None]
    calls = function_calls(known, limit * 1e-6) if limit and len(known) == len(times) else None
    number = layers[0].subgraph
    return Subgraph(
        f"{name}_subgraph_{number}", layers, times, sum(map(roof.at_least, layers)), calls
    )


def function_calls(times: Iterable[float], limit: float) -> int:
    """So many, each of whole layers and, where a layer alone does not take longer, within `limit`
    seconds."""
    calls, taken = 0, limit
    for time in times:
        if calls == 0 or taken + time > limit:
            calls, taken = calls + 1, 0.0
        taken += time
    return calls


def summed(times: Iterable[float | None]) -> float | None:
    """None where one is not known."""
    found = list(times)
    known = [time for time in found if time is not None]
    return sum(known) if len(known) == len(found) else None


def assumptions(program: Program, cost: Cost, cores: int, given: bool) -> Iterator[str]:
    """What the figures rest on, for a person."""
    if cost.macs is None:
        yield "the unit's int8 peak is not published: computing takes no time here"
    else:
        used = min(cores, cost.cores)
        yield (
            f"{cost.macs * used / cost.cores / 1e12:g} T int8 multiply-accumulates per second "
            f"({used} of {cost.cores} cores), always reached: a lower bound of the time"
        )
        if used > 1:
            yield "D-Robotics says of two cores that they are about 1.5 times as fast as one"
    if cost.ddr is None:
        yield "no bandwidth of its DDR is published: computing alone is told (--ddr takes yours)"
    else:
        yield f"{cost.ddr / 1e9:g} GB/s of DDR" + (", as given" if given else "")
    if cost.on_chip is None:
        yield "its memory on the chip is not published: every tensor goes through DDR"
    else:
        yield f"tensors stay on the chip while all that lives is within {cost.on_chip} bytes"
    if any(tensor.dtype == "int16" for tensor in program.tensors.values()):
        yield "products of int16 are counted at the peak of int8"
    yield "loading and computing overlap within a layer, not between layers"
    yield "arithmetic that is no product takes no time of its own: its rate is not published"
    yield "what runs on the CPU is not in the estimate; nothing was measured"
