"""The latency estimate of a compiled file, as JSON for the page."""

from __future__ import annotations

from npumake.digest import Json
from npumake.perf.latency import file_latency
from npumake.targets.target import Target


def estimate_of(data: bytes, target: Target) -> Json:
    """`latency_ms` of one frame; `is_bound` if it is a lower bound; `between_ms` is the interval of
    a fitted estimate; `said` are the assumptions. None without an estimate. Raises GraphError for
    a file that is not of the target's backend.
    """
    latency = file_latency(data, target)
    if latency is None:
        return None
    return {
        "latency_ms": _short(latency.milliseconds),
        "is_bound": latency.is_bound,
        "between_ms": None if latency.interval is None else [*map(_short, latency.interval)],
        "said": [*latency.assumptions],
    }


def _short(milliseconds: float) -> float:
    return float(f"{milliseconds:.6g}")
