"""Fit: whether the grid of a tensor is made for the numbers that lie on it.

    reach      how far the grid goes beyond them: the least of limit / extreme over both signs
    noise      the mean square of what the grid loses of them
    room       that of a grid that just holds them: (step / reach)**2 / 12, or noise / reach**2
               where that is less, as it is of numbers most of which are zero
    excess     1 - room / noise: the share that another grid of as many bits would not lose

Numbers fit whose grid goes to their extremes; clipped tails cost little and gain steps, so that a
method which clips has little excess, or less than none. A grid four times too wide has 15 / 16.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from pipeline.debug.calibration_nodes import CalibrationNode, without
from pipeline.debug.sensitivity import Patient
from pipeline.debug.tensors import weight
from pipeline.engine.mixed import float_session
from pipeline.engine.parallel import side_by_side
from pipeline.graph import is_float

WIDE = 2.5  # a grid of powers of two may reach twice as far as it has to
CLIPPED = 0.5  # of the noise


class Seen(NamedTuple):
    """Of each channel: the extremes, what is lost and what of it is clipped, squared and summed,
    and how many there are."""

    low: np.ndarray
    high: np.ndarray
    lost: np.ndarray
    clipped: np.ndarray
    numbers: int

    def plus(self, other: Seen) -> Seen:
        return Seen(
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
            self.lost + other.lost,
            self.clipped + other.clipped,
            self.numbers + other.numbers,
        )


class Fit(NamedTuple):
    """Of a calibration node; `clipped` is the share of its noise that is clipping."""

    reaches: np.ndarray  # by channel where there is a scale for each
    clipped: float
    excess: float
    threshold: float

    @property
    def reach(self) -> float:
        return float(np.median(self.reaches))

    @property
    def is_wide(self) -> bool:
        return self.reach >= WIDE and self.excess > 0.0

    @property
    def is_clipped(self) -> bool:
        return not self.is_wide and self.clipped >= CLIPPED and self.excess > 1 - 1 / WIDE**2

    @property
    def cause(self) -> str:
        """A remark, empty where the grid fits."""
        if self.is_wide:
            held = f"{self.threshold / self.reach:.4g}"
            return f"its grid reaches {self.threshold:.4g}, its values {held}: bits are unused"
        return f"values are clipped at {self.threshold:.4g}" if self.is_clipped else ""


def fits(patient: Patient) -> dict[str, Fit]:
    """Of every calibration node, over all samples in float, by its name. Raises GraphError."""
    nodes = patient.nodes
    found = {
        one.name: _fit(one, seen(one, weight(patient.calibrated, one)))
        for one in nodes
        if one.kind == "weight"
    }
    real, values = without(patient.calibrated), patient.calibrated.values()
    watched = [n for n in nodes if n.kind == "activation" and is_float(values[n.tensor])]
    real.expose(dict.fromkeys(one.tensor for one in watched))
    session = float_session(real, patient.operators)

    def looked(feed: object) -> list[Seen]:
        made = dict(zip(session.output_names, session.run(None, feed), strict=True))  # type: ignore[arg-type]
        return [seen(one, made[one.tensor]) for one in watched]

    totals = _totals(side_by_side(looked, patient.samples))
    return found | {one.name: _fit(one, all_) for one, all_ in zip(watched, totals, strict=True)}


def refitted(one: CalibrationNode, fit: Fit) -> CalibrationNode:
    """The same on a grid that just holds its numbers."""
    scale = np.reshape(one.scale, -1) / fit.reaches
    return one._replace(scale=scale.reshape(one.scale.shape).astype(one.scale.dtype))


def seen(one: CalibrationNode, values: np.ndarray) -> Seen:
    """By channel where there is a scale for each."""
    rows = values[None] if one.axis is None else np.moveaxis(values, one.axis, 0)
    rows = rows.reshape(len(rows), -1).astype(np.float64)
    low, high = (np.reshape(limit, (-1, 1)) for limit in one.limits)
    step = np.reshape(one.scale, (-1, 1)).astype(np.float64)
    inside = np.clip(rows, low, high)
    lost = rows - np.rint(inside / step) * step  # the zero point is whole: it changes nothing here
    lost2, clipped2 = ((each**2).sum(axis=1) for each in (lost, rows - inside))
    return Seen(rows.min(axis=1), rows.max(axis=1), lost2, clipped2, rows.shape[1])


def _totals(found: Iterable[list[Seen]]) -> list[Seen]:
    totals: list[Seen] = []
    for each in found:
        totals = [a.plus(b) for a, b in zip(totals, each, strict=True)] if totals else each
    return totals


def _fit(one: CalibrationNode, total: Seen) -> Fit:
    low, high = (np.reshape(limit, -1).astype(np.float64) for limit in one.limits)
    sides = [_reach(high, total.high), _reach(low, total.low)]
    reach = np.minimum(*sides)
    reach = np.where(np.isfinite(reach), reach, 1.0)  # all zero: any grid will do
    step = np.reshape(one.scale, -1).astype(np.float64)
    lost, clipped = (float(np.sum(each)) / total.numbers for each in (total.lost, total.clipped))
    room = min(float(np.sum((step / reach) ** 2 / 12)), lost * float(np.mean(reach**-2)))
    return Fit(
        reach,
        clipped / lost if lost else 0.0,
        1.0 - room / lost if lost else 0.0,
        one.threshold,
    )


def _reach(limit: np.ndarray, extreme: np.ndarray) -> np.ndarray:
    """Infinite on a side where there is nothing."""
    there = extreme * np.sign(limit) > 0
    return np.where(there, limit / np.where(there, extreme, 1.0), np.inf)
