"""How long a compiled file takes, for the page: npumake.perf in the page's words."""

from __future__ import annotations

from npumake.digest import Json
from npumake.perf.latency import file_latency
from npumake.targets.target import Target


def estimate_of(data: bytes, target: Target) -> Json:
    """`latency_ms` of one frame, `is_bound` where it takes at least that, `between_ms` of a fitted
    one, `said` on what it rests; None where nothing tells. Raises GraphError for a file that the
    target's backend did not make.
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
