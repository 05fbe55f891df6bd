"""Rounding: codes for the weights of a layer, given its inputs.

With X the inputs of a layer, one row per position and one column per weight of a channel, and t the
part that its bias absorbs without rounding,

    || X w - X q - t ||^2 = (w - q)' H (w - q)        H = X' X - n m m'        t = m' (w - q)

where m is the mean of the n rows of X. Then, for each channel,

few weights    the best of all ways to round each of them down or up: those of a depthwise Conv
many           one after another, the one with the largest H[i, i] first. w[i] rounded to q[i]
               leaves an error that the others compensate best by (optimal brain surgery)

    w[j] -= (w[i] - q[i]) / U[i, i] * U[i, j]  for j > i        U' U = inverse of H, U upper

(E. Frantar, S. Ashkboos, T. Hoefler, D. Alistarh: GPTQ, ICLR 2023, arXiv 2210.17323; all rows of a
layer share H, each group of a Conv has its own). H gets DAMPING of its mean diagonal, so that it
has an inverse.

Shapes: weights (groups, rows, n), H (groups, n, n), scales (groups, rows, 1), all float64.
"""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import numpy as np

BLOCK_WEIGHTS = 128  # rounded before one matrix product updates the others
DAMPING = 0.01
MAX_EXHAUSTIVE_WEIGHTS = 9  # of a channel: all 2^n roundings are tried
SCALE_RATIOS = np.linspace(1.0, 0.8, 11)


class Ways(NamedTuple):
    """Every v in {0, 1}^n, (2^n, n), and v'Hv, (groups, 2^n)."""

    v: np.ndarray
    own: np.ndarray


def best_scale(
    rows: np.ndarray, h: np.ndarray, scale: np.ndarray, smallest: np.ndarray, limits: np.iinfo
) -> np.ndarray:
    """For each row, the one of SCALE_RATIOS * scale with the least loss, exact in float32."""
    chosen, min_loss = scale, np.full(scale.shape, np.inf)
    ways = _ways(h)
    for ratio in SCALE_RATIOS:
        tried = (ratio * scale).astype(np.float32).astype(np.float64)
        d = rows / tried - _best(rows / tried, h, limits.min, limits.max, ways)
        loss = ((d @ h) * d).sum(axis=2, keepdims=True) * tried**2
        better = (loss < min_loss) & ((tried >= smallest) | (ratio == 1.0))
        chosen, min_loss = np.where(better, tried, chosen), np.where(better, loss, min_loss)
    return chosen


def best(w: np.ndarray, h: np.ndarray, low: int, high: int) -> np.ndarray:
    """The codes of least loss (w - q)' H (w - q) among all floors and ceilings; the first of
    equals.

    Rows that leave [low, high] are rounded to nearest. Shapes as in `rounded`. With e = w -
    floor(w) and v in {0, 1}^n the loss is e'He - 2 e'Hv + v'Hv.
    """
    return _best(w, h, low, high, _ways(h))


def _best(w: np.ndarray, h: np.ndarray, low: int, high: int, ways: Ways) -> np.ndarray:
    down = np.floor(w)
    loss = ways.own[:, None] - 2.0 * ((w - down) @ h @ ways.v.T)
    codes = down + ways.v[np.argmin(loss, axis=2)]
    fits = ((codes >= low) & (codes <= high)).all(axis=2, keepdims=True)
    return np.where(fits, codes, np.clip(np.rint(w), low, high))


def _ways(h: np.ndarray) -> Ways:
    v = np.array(list(product((0.0, 1.0), repeat=h.shape[2])))
    pairs = (v[:, :, None] * v[:, None]).reshape(len(v), -1)
    return Ways(v, h.reshape(len(h), -1) @ pairs.T)


def rounded(w: np.ndarray, h: np.ndarray, low: int, high: int) -> np.ndarray:
    """Codes within [low, high] for weights in steps of their grid.

    w (groups, rows, n), h (groups, n, n), both float64; the result has the shape of w.
    """
    n = w.shape[2]
    order = np.argsort(-np.diagonal(h, axis1=1, axis2=2), axis=1, kind="stable")
    w = np.take_along_axis(w, order[:, None], axis=2)
    u = _upper(np.take_along_axis(np.take_along_axis(h, order[:, None], 2), order[..., None], 1))
    for start in range(0, n, BLOCK_WEIGHTS):
        stop = min(start + BLOCK_WEIGHTS, n)
        errors = np.empty((*w.shape[:2], stop - start))
        for i in range(start, stop):
            codes = np.clip(np.rint(w[:, :, i]), low, high)
            error = (w[:, :, i] - codes) / u[:, i, i, None]
            w[:, :, i + 1 : stop] -= error[..., None] * u[:, i, None, i + 1 : stop]
            w[:, :, i] = codes
            errors[:, :, i - start] = error
        w[:, :, stop:] -= errors @ u[:, start:stop, stop:]
    codes = np.empty_like(w)
    np.put_along_axis(codes, order[:, None], w, axis=2)
    return codes


def _upper(h: np.ndarray) -> np.ndarray:
    """U with U' U = inverse of h, damped; an input that is always zero (h[i, i] = 0) stands alone.

    Of h with rows and columns reversed, the Cholesky factor is L, and L^-1 reversed is U.
    """
    diagonal = np.diagonal(h, axis1=1, axis2=2)
    damping = DAMPING * diagonal.mean(axis=1, keepdims=True) + (diagonal == 0)
    damped = h + damping[:, None] * np.eye(h.shape[1])
    return _inverse(np.linalg.cholesky(damped[:, ::-1, ::-1]))[:, ::-1, ::-1]


def _inverse(lower: np.ndarray) -> np.ndarray:
    """The inverse of lower triangular matrices, by halves: a sixth of the cost of a general
    inverse."""
    n = lower.shape[1]
    if n <= BLOCK_WEIGHTS:
        return np.linalg.inv(lower)
    half = n // 2
    inverse = np.zeros_like(lower)
    first, last = (_inverse(lower[:, own, own]) for own in (slice(half), slice(half, n)))
    inverse[:, :half, :half], inverse[:, half:, half:] = first, last
    inverse[:, half:, :half] = -last @ (lower[:, half:, :half] @ first)
    return inverse
