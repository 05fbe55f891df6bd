"""Latency of a unit by rates that were fitted on the latencies of whole models.

    C = sum of work / rate      D = bytes through DDR / bandwidth      t = sqrt(C^2 + D^2)

over the layers of a subgraph: loading and computing overlap except for waiting times. A layer with
times c and d has the share (c C + d D) / t; the shares sum to t.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from npumake.perf.layers import LayerCost
from npumake.targets.cost import Fitted


def rates_of(fitted: Fitted) -> Mapping[str | None, float]:
    """The rate of each kind of work (npumake.perf.kinds), per second."""
    return {
        "conv": fitted.conv,
        "table": fitted.table,
        "arithmetic": fitted.arithmetic,
        "concat": fitted.concat,
        "mixed": fitted.mixed,
        None: math.inf,
    }


def computing(layer: LayerCost, fitted: Fitted) -> float:
    """Compute time of a layer in seconds, without DDR traffic."""
    kind, amount, channels = layer.work
    idle = max(1.0, fitted.lanes / channels) if channels else 1.0
    return max(amount * idle / rates_of(fitted)[kind], layer.macs / fitted.conv)


def seconds(layers: Sequence[LayerCost], fitted: Fitted) -> tuple[float, ...]:
    """Seconds of each layer of a subgraph; their sum is the subgraph's."""
    computed = [computing(layer, fitted) for layer in layers]
    moving = [layer.moved / fitted.ddr for layer in layers]
    c, d = sum(computed), sum(moving)
    whole = math.hypot(c, d) or 1.0
    return tuple((x * c + y * d) / whole for x, y in zip(computed, moving, strict=True))
