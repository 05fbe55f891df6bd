"""An estimate as JSON: for the model, and for each subgraph with the keys of hb_perf.

Milliseconds, and bytes per frame; unknown figures are null.
"""

from __future__ import annotations

from collections.abc import Mapping

from npumake.digest import Json
from npumake.perf.estimate import Estimate, Subgraph


def document(estimate: Estimate) -> Mapping[str, Json]:
    """As JSON; milliseconds, bytes per frame."""
    return {
        "model name": estimate.name,
        "target": estimate.target,
        "march": estimate.march,
        "core number": estimate.cores,
        "latency (ms)": _ms(estimate.latency),
        "latency interval (ms)": _bounds(estimate.interval, 1000.0),
        "extrapolated": estimate.extrapolated,
        "latency on the board (ms)": _ms(estimate.on_board),
        "latency at least (ms)": _ms(estimate.at_least),
        "FPS": estimate.fps,
        "OPs per frame": estimate.ops,
        "DDR bytes per frame": estimate.loaded + estimate.stored,
        "DDR bytes interval": _bounds(estimate.moved_interval, 1),
        "loaded bytes per frame": estimate.loaded,
        "stored bytes per frame": estimate.stored,
        "arena": {
            "peak bytes": estimate.memory.peak,
            "largest live set": estimate.memory.live_peak,
        },
        "nodes on the CPU": list(estimate.on_cpu),
        "subgraphs": [part.name for part in estimate.subgraphs],
        "assumptions": list(estimate.assumptions),
    }


def subgraph_document(part: Subgraph, estimate: Estimate) -> Mapping[str, Json]:
    """The summary of a subgraph with the keys of hb_perf; with `debug`, its layers too."""
    latency, moved = part.latency, part.loaded + part.stored
    summary = {
        "BPU OPs per frame (effective)": part.ops,
        "BPU core number": estimate.cores,
        "BPU march": estimate.march,
        "DDR bytes per frame": moved,
        "DDR bytes per second": moved / latency if latency else None,
        "DDR megabytes per frame": moved / 1e6,
        "FPS": 1.0 / latency if latency else None,
        "frame per run": 1,
        "function calls": part.calls,
        "latency (ms)": _ms(latency),
        "latency at least (ms)": _ms(part.at_least),
        "loaded bytes per frame": part.loaded,
        "stored bytes per frame": part.stored,
    }
    rows = [
        {
            "layer name": layer.name,
            "type": layer.op,
            "OPs": layer.ops,
            "multiply-accumulates": layer.macs,
            "load cost": layer.loaded,
            "store cost": layer.stored,
            "latency (ms)": _ms(time),
            "origin ops": list(layer.origin),
        }
        for layer, time in zip(part.layers, part.times, strict=True)
    ]
    return {"summary": summary, **({"layer details": rows} if estimate.debug else {})}


def _bounds(interval: tuple[float, float] | None, unit: float) -> Json:
    return None if interval is None else [bound * unit for bound in interval]


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else 1000.0 * seconds
