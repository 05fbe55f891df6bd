"""The estimated latency of a compiled file, for a gate."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping

from pipeline.bundle.archive import Bundle
from pipeline.perf.estimate import estimated_latency_ms
from pipeline.perf.vela import vela_of
from pipeline.targets.target import Target


def file_latency_ms(data: bytes, target: Target) -> float | None:
    """Of one frame; None where the target's figures do not tell, and for a backend that estimates
    nothing. Raises GraphError for a file that the backend did not make."""
    estimate = ESTIMATES.get(target.backend)
    return None if estimate is None else estimate(data, target)


def _of_bundle(data: bytes, target: Target) -> float | None:
    bundle = Bundle.from_bytes(data)
    return estimated_latency_ms(bundle.program, target, bundle.settings.get("core_num", 1))


def _of_vela(data: bytes, target: Target) -> float | None:
    return float(vela_of(io.BytesIO(data), target.name)["latency (ms)"])


ESTIMATES: Mapping[str, Callable[[bytes, Target], float | None]] = {
    "hybrid": _of_bundle,
    "vela": _of_vela,
}
