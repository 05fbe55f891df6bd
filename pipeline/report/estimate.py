"""How long a compiled file takes, for the page: pipeline.perf in the page's words."""

from __future__ import annotations

from pipeline.digest import Json
from pipeline.perf.latency import file_latency
from pipeline.targets.target import Target


def estimate_of(data: bytes, target: Target) -> Json:
    """`latency_ms` of one frame, `is_bound` where it takes at least that, `said` on what it rests;
    None where nothing tells. Raises GraphError for a file that the target's backend did not make.
    """
    found = file_latency(data, target)
    if found is None:
        return None
    milliseconds = float(f"{found.milliseconds:.6g}")
    return {"latency_ms": milliseconds, "is_bound": found.is_bound, "said": [*found.assumptions]}
