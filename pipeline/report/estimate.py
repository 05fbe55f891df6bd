"""What a target's compiler estimates of its file, where it says so in a member behind it."""

from __future__ import annotations

import io
import json
import zipfile

from pipeline.compilers.vela import ESTIMATE
from pipeline.digest import Json


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
