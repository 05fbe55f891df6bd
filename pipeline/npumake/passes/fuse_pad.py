"""Fuses a Pad into the only window that reads it.

A Conv pads with zeros itself. An AveragePool does too if it counts its padding; its own pads must
count or be zero. A MaxPool ignores its padding, so the Pad must add lowest values, or zeros to a
non-negative tensor.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from npumake.graph import Graph, Node, array, attribute, only_consumer, producer

MIN_FLOAT32 = float(np.finfo(np.float32).min)


class _Pair(NamedTuple):
    pad: Node
    window: Node
    pads: list[int]  # sum of both


def fuse_pad(graph: Graph) -> int:
    pairs = [pair for pad in graph.nodes("Pad") if (pair := _pair(pad))]
    for pad, window, pads in pairs:
        counted = {"count_include_pad": 1} if window.op_type == "AveragePool" else {}
        graph.set_attributes(window, pads=pads, auto_pad=None, **counted)
        x = pad.inputs[0]
        assert x is not None
        graph.set_inputs(window, {0: x})
        graph.absorb(window, pad)
    return len(pairs)


def _pair(pad: Node) -> _Pair | None:
    window, added = only_consumer(pad.outputs[0]), _spatial(pad)
    if window is None or window.op_type not in WINDOWS or window.domain or added is None:
        return None
    if window.inputs[0] is not pad.outputs[0] or not WINDOWS[window.op_type](pad, window):
        return None
    if attribute(window, "auto_pad", "NOTSET") not in ("NOTSET", "VALID"):
        return None
    own = attribute(window, "pads", (0,) * len(added))
    pads = [p1 + p2 for p1, p2 in zip(own, added, strict=True)]
    kernel = attribute(window, "kernel_shape", ())
    if window.op_type != "Conv" and any(p >= k for p, k in zip(pads, kernel * 2, strict=True)):
        return None  # engines refuse a window entirely in the padding
    return _Pair(pad, window, pads)


def _spatial(pad: Node) -> list[int] | None:
    """The pads, every begin and then every end, if they are constant, non-negative and
    spatial."""
    pads = array(pad.inputs[1])
    out_shape = pad.outputs[0].shape
    if pads is None or out_shape is None or attribute(pad, "mode", "constant") != "constant":
        return None
    rank = len(out_shape)
    listed = array(pad.inputs[3]) if len(pad.inputs) > 3 else None
    axes = range(rank) if listed is None else [int(axis) % rank for axis in listed]
    ends = np.zeros((2, rank), np.int64)
    ends[:, list(axes)] = pads.reshape(2, -1)
    if ends.min() < 0 or ends[:, :2].any():
        return None
    return [int(size) for size in ends[:, 2:].reshape(-1)]


def _value(pad: Node) -> float | None:
    """The fill value; None if it is computed."""
    fill = pad.inputs[2] if len(pad.inputs) > 2 else None
    if fill is None:
        return 0.0
    values = array(fill)
    return None if values is None else float(values.reshape(-1)[0])


def _counts_padding(pad: Node, window: Node) -> bool:
    own = any(attribute(window, "pads", ())) and not attribute(window, "count_include_pad", 0)
    return _value(pad) == 0.0 and not own and not attribute(window, "ceil_mode", 0)


def _never_wins(pad: Node, window: Node) -> bool:
    value, x = _value(pad), pad.inputs[0]
    if value is None or x is None or attribute(window, "ceil_mode", 0):
        return False
    if len(window.outputs) > 1:  # indices of maxima count in the padded tensor
        return False
    return value <= MIN_FLOAT32 or (value == 0.0 and _is_positive(producer(x)))


def _is_positive(maker: Node | None) -> bool:
    if maker is None or maker.domain:
        return False
    if maker.op_type != "Clip":
        return maker.op_type in ("Relu", "Sigmoid", "Softmax", "HardSigmoid")
    low = array(maker.inputs[1]) if len(maker.inputs) > 1 else None
    return low is not None and float(low.reshape(-1)[0]) >= 0.0


WINDOWS: dict[str, Callable[[Node, Node], bool]] = {
    "AveragePool": _counts_padding,
    "Conv": lambda pad, _: _value(pad) == 0.0,
    "MaxPool": _never_wins,
}
