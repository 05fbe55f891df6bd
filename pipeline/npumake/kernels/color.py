"""Color as linear algebra on channels, each a letter: r g b, y u v, a (alpha, ignored).

    Y = 0.299 R + 0.587 G + 0.114 B        U = (B - Y) / 1.772        V = (R - Y) / 1.402
    R = Y + 1.402 V                        B = Y + 1.772 U
    G = Y - (0.114 · 1.772 / 0.587) U - (0.299 · 1.402 / 0.587) V

    code of k = zero_k + gain_k · k
    full range: gain 1, zero (0, 128, 128)
    video range: gain (219, 224, 224) / 255, zero (16, 128, 128)

Source: ITU-R BT.601-7, section 2.5; full range as in JFIF 1.02. RGB codes are R, G, B themselves.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from npumake.kernels.arrays import Floats

_R, _G, _B = 0.299, 0.587, 0.114
_U, _V = 2.0 * (1.0 - _B), 2.0 * (1.0 - _R)

FORMULAS: dict[str, dict[str, float]] = {
    "r": {"y": 1.0, "v": _V},
    "g": {"y": 1.0, "u": -_B * _U / _G, "v": -_R * _V / _G},
    "b": {"y": 1.0, "u": _U},
    "y": {"r": _R, "g": _G, "b": _B},
    "u": {"r": -_R / _U, "g": -_G / _U, "b": 0.5},
    "v": {"r": 0.5, "g": -_G / _V, "b": -_B / _V},
    "a": {},
}
_FULL = {"y": (1.0, 0.0), "u": (1.0, 128.0), "v": (1.0, 128.0)}
_VIDEO = {"y": (219 / 255, 16.0), "u": (224 / 255, 128.0), "v": (224 / 255, 128.0)}


class Mixing(NamedTuple):
    """target codes = matrix @ source codes + shift."""

    matrix: Floats  # (target channels, source channels), float64
    shift: Floats  # (target channels,), float64


def mixing(source: str, target: str, *, video: bool = False) -> Mixing:
    """How codes of the channels `target` follow from those of `source`, both as letters in order.

    A channel in both is copied, regardless of its range. `video` is the range of converted y, u and
    v. Not rounded, not clipped.
    """
    codes = _VIDEO if video else _FULL
    matrix, shift = np.zeros((len(target), len(source))), np.zeros(len(target))
    for row, letter in enumerate(target):
        if letter in source:
            matrix[row, source.index(letter)] = 1.0
            continue
        gain, shift[row] = codes.get(letter, (1.0, 0.0))
        for part, weight in FORMULAS[letter].items():
            part_gain, zero = codes.get(part, (1.0, 0.0))
            matrix[row, source.index(part)] = weight * gain / part_gain
            shift[row] -= weight * gain / part_gain * zero
    return Mixing(matrix, shift)


def mixed(picture: Floats, how: Mixing) -> Floats:
    """`picture` (N, C, H, W) → other channels (N, C', H, W), float64."""
    result = np.zeros((1, len(how.shift), 1, 1)) + how.shift[:, None, None]
    for channel, weights in enumerate(how.matrix.T):  # in order: the same sum on every machine
        result = result + weights[:, None, None] * picture[:, channel, None].astype(np.float64)
    return result


def halved(picture: Floats) -> Floats:
    """The mean of each 2x2 block: (N, C, H, W) with even H and W → (N, C, H/2, W/2)."""
    n, c, h, w = picture.shape
    return picture.reshape(n, c, h // 2, 2, w // 2, 2).mean(axis=(3, 5))


def stretched(picture: Floats, height: int, width: int) -> Floats:
    """Nearest-neighbor resize to (N, C, height, width)."""
    rows = (2 * np.arange(height) + 1) * picture.shape[2] // (2 * height)
    columns = (2 * np.arange(width) + 1) * picture.shape[3] // (2 * width)
    return picture[:, :, rows][:, :, :, columns]
