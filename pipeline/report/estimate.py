"""How long a compiled file takes: what its compiler estimates in a member behind it, or what the
published figures of the target allow (pipeline.perf)."""

from __future__ import annotations

import io
import json
import zipfile

from pipeline.bundle.archive import Bundle
from pipeline.compilers.vela import ESTIMATE
from pipeline.digest import Json
from pipeline.perf.estimate import estimated
from pipeline.targets.target import Target


def estimate_of(data: bytes, target: Target) -> Json:
    """`latency_ms` of one frame, `is_bound` where it takes at least that, `said` on what it rests;
    None where nothing tells."""
    if target.backend != "hybrid":
        found = estimate_in(data)
        return None if found is None else {**found, "is_bound": False, "said": [found["tool"]]}
    made = estimated("report", Bundle.from_bytes(data), target)
    seconds = made.at_least if made.latency is None else made.latency
    if not seconds:
        return None
    milliseconds = float(f"{1000 * seconds:.6g}")
    is_bound = made.latency is None
    return {"latency_ms": milliseconds, "is_bound": is_bound, "said": list(made.assumptions)}


def estimate_in(data: bytes) -> Json:
    """`tool`, `latency_ms` and the operators by unit; None where there is no estimate."""
    if not zipfile.is_zipfile(io.BytesIO(data)):
        return None
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        if ESTIMATE not in archive.namelist():
            return None
        found = json.loads(archive.read(ESTIMATE))
    seconds = found["summary"]["inference_time"]
    return {
        "tool": found["tool"],
        "latency_ms": float(f"{1000 * seconds:.6g}"),
        "operators": found["operators"],
    }
