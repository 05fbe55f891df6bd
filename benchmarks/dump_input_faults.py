"""Faults of a camera or its driver: the network is fed another picture."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from dump_value_faults import ORIENTED, SHIFTS, Draw


class InputFault(NamedTuple):
    change: Callable[[np.ndarray, Draw], np.ndarray]
    causes: tuple[str, ...]


def picture_axes(x: np.ndarray) -> tuple[int, int]:
    """Height and width."""
    return (1, 2) if x.ndim == 4 and x.shape[3] in (1, 3) else (2, 3)


def _black(x: np.ndarray) -> float:
    return float(np.min(x))


def _bright(factor: float) -> Callable[[np.ndarray, Draw], np.ndarray]:
    def changed(x: np.ndarray, rng: Draw) -> np.ndarray:
        return _black(x) + (x - _black(x)) * factor

    return changed


INPUTS: Mapping[str, InputFault] = {
    "picture by 90": InputFault(lambda x, r: np.rot90(x, 1, picture_axes(x)), ORIENTED),
    "picture by 180": InputFault(lambda x, r: np.flip(x, picture_axes(x)), ORIENTED),
    "picture by 270": InputFault(lambda x, r: np.rot90(x, 3, picture_axes(x)), ORIENTED),
    "picture mirrored": InputFault(lambda x, r: np.flip(x, picture_axes(x)[1]), ORIENTED),
    "picture upside down": InputFault(lambda x, r: np.flip(x, picture_axes(x)[0]), ORIENTED),
    "picture half bright": InputFault(_bright(0.5), ("brightness", "scale")),
    "picture half as wide": InputFault(_bright(0.25), ("brightness", "scale")),
    "picture inverted": InputFault(
        lambda x, r: np.max(x) + np.min(x) - x, ("brightness", "sign", "scale")
    ),
    "picture shifted": InputFault(lambda x, r: np.roll(x, (2, 1), picture_axes(x)), SHIFTS),
    "picture brighter": InputFault(
        lambda x, r: np.minimum(x + 0.1 * (np.max(x) - np.min(x)), np.max(x)),
        ("brightness", "zero_point"),
    ),
    "picture zoomed": InputFault(
        lambda x, r: np.repeat(np.repeat(x, 2, picture_axes(x)[0]), 2, picture_axes(x)[1])[
            tuple(slice(n) for n in x.shape)
        ],
        ("zoom",),
    ),
    "gray picture": InputFault(
        lambda x, r: np.broadcast_to(x.mean(axis=6 - sum(picture_axes(x)), keepdims=True), x.shape),
        ("channel_order", "gray"),
    ),
}
