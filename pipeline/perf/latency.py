"""The estimated latency of a compiled file: for a gate, a comparison, a report.

Where the bandwidth of the DDR is not published, it is a lower bound: what computing alone takes.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from typing import NamedTuple

from pipeline.bundle.archive import Bundle
from pipeline.bundle.program import Program
from pipeline.perf.estimate import assumptions, roof_of, summed
from pipeline.perf.layers import layers_of
from pipeline.perf.vela import has_estimate, vela_of
from pipeline.targets.target import Target


class Latency(NamedTuple):
    """Of one frame. A bound is the least it can take: something is not published."""

    milliseconds: float
    is_bound: bool
    assumptions: tuple[str, ...]

    def __str__(self) -> str:
        return f"at least {self.milliseconds:.4g}" if self.is_bound else f"{self.milliseconds:.4g}"


def file_latency(data: bytes, target: Target) -> Latency | None:
    """Of a compiled file; None where nothing is published of the target, or nothing runs on it,
    and for a backend that estimates nothing. Raises GraphError for a file that the backend did
    not make."""
    estimate = ESTIMATES.get(target.backend)
    return None if estimate is None else estimate(data, target)


def program_latency(program: Program, target: Target, core_num: int = 1) -> Latency | None:
    """By the roofline of pipeline.perf.estimate; a bound where one of its figures is missing."""
    layers = layers_of(program, target.cost.on_chip)
    roof = roof_of(target.cost, core_num)
    whole = summed(map(roof.time, layers))
    seconds = sum(map(roof.at_least, layers)) if whole is None else whole
    if not seconds:
        return None
    said = tuple(assumptions(program, target.cost, core_num, given=False))
    return Latency(1000.0 * seconds, whole is None, said)


def vela_latency(data: bytes, name: str) -> Latency | None:
    """None for a .tflite that Vela did not compile. Raises GraphError for a damaged estimate."""
    if not has_estimate(data):
        return None
    found = vela_of(io.BytesIO(data), name)
    return Latency(float(found["latency (ms)"]), False, tuple(found["assumptions"]))


def _of_bundle(data: bytes, target: Target) -> Latency | None:
    bundle = Bundle.from_bytes(data)
    return program_latency(bundle.program, target, bundle.settings.get("core_num", 1))


def _of_vela(data: bytes, target: Target) -> Latency | None:
    return vela_latency(data, target.name)


ESTIMATES: Mapping[str, Callable[[bytes, Target], Latency | None]] = {
    "hybrid": _of_bundle,
    "vela": _of_vela,
}
