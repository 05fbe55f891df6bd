"""The estimated latency of a compiled file, for gates, comparisons and reports.

If the DDR bandwidth is not published, it is a lower bound: only the compute time.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from typing import NamedTuple

from npumake.bundle.archive import Bundle
from npumake.perf.assumed import assumptions, latency_text
from npumake.perf.estimate import (
    between,
    board_ddr,
    bound_of,
    nv12_inputs,
    parts_of,
    summed,
    times_of,
    with_ddr,
)
from npumake.perf.layers import layers_of
from npumake.perf.vela import LATENCY, has_estimate, vela_of
from npumake.targets.target import Target


class Latency(NamedTuple):
    """The latency of one frame. `is_bound`: a lower bound, because a rate is not published.
    `interval` is that of a fitted estimate, in milliseconds; `left_out` counts the operators on the
    CPU that a compiler's own estimate leaves out."""

    milliseconds: float
    is_bound: bool
    assumptions: tuple[str, ...]
    interval: tuple[float, float] | None = None
    extrapolated: bool = False
    left_out: int = 0

    @property
    def per_frame(self) -> str:
        count = self.left_out
        without = f", without {count} operator{'s' * (count > 1)} on the CPU" if count else ""
        return f"{self} per frame{without}"

    def __str__(self) -> str:
        took = self.milliseconds / 1000
        low_high = self.interval and (self.interval[0] / 1000, self.interval[1] / 1000)
        return latency_text(None if self.is_bound else took, took, low_high, self.extrapolated)


def file_latency(data: bytes, target: Target) -> Latency | None:
    """The latency of a compiled file; None without published figures, without layers on the unit
    and for backends without an estimate. Raises GraphError for a file of another backend."""
    estimate = ESTIMATES.get(target.backend)
    return None if estimate is None else estimate(data, target)


def bundle_latency(bundle: Bundle, target: Target) -> Latency | None:
    """Fitted, or by the roofline; a lower bound if a rate is not published."""
    ddr = board_ddr(bundle)
    cores, cost = bundle.settings.get("core_num", 1), with_ddr(target.cost, ddr)
    layers = layers_of(bundle.program, cost.on_chip_bytes, nv12_inputs(bundle))
    parts = parts_of(layers)
    whole = summed(time for part in parts for time in times_of(part, cost, cores))
    seconds = sum(bound_of(part, cost, cores) for part in parts) if whole is None else whole
    if not seconds:
        return None
    rests_on = tuple(assumptions(bundle.program, cost, cores, has_own_ddr=ddr is not None))
    beyond = cost.fitted is not None and cost.fitted.extrapolates(seconds)
    interval = between(1000.0 * seconds, cost.fitted)
    return Latency(1000.0 * seconds, whole is None, rests_on, interval, beyond)


def vela_latency(data: bytes, name: str) -> Latency | None:
    """None for a .tflite that Vela did not compile, or of which nothing runs on the NPU. Raises
    GraphError for a damaged estimate."""
    if not has_estimate(data):
        return None
    document = vela_of(io.BytesIO(data), name)
    if LATENCY not in document:
        return None
    left_out, assumed = document["operators"]["cpu"], tuple(document["assumptions"])
    return Latency(float(document[LATENCY]), False, assumed, left_out=left_out)


def _of_bundle(data: bytes, target: Target) -> Latency | None:
    return bundle_latency(Bundle.from_bytes(data), target)


def _of_vela(data: bytes, target: Target) -> Latency | None:
    return vela_latency(data, target.name)


ESTIMATES: Mapping[str, Callable[[bytes, Target], Latency | None]] = {
    "hybrid": _of_bundle,
    "vela": _of_vela,
}
