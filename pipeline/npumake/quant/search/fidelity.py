"""Fidelity: how close a quantized model's outputs are to the float model's; 1 means equal.

An output that is one vector, such as a classifier's logits, is scored by its cosine. For an output
with many positions, a detector's, a cosine sees what is large and not what matters: the background
among thousands of positions, 300 pixels beside a score of 0.9, the place of a box, which follows
from its position. So, for sample n, position p and channel c:

    a, b      outputs of the float and the quantized model;  m = mean of a over the samples
    scores    the channels within 0 ... 1, unless there are four, which are a box
    w[n, p]   the weight of a position: the square of the sum over scores of (a - m)^2, over all
              outputs with as many positions; 1 where none has scores
    v[p, c]   the variance there: mean over n of (a - m)^2
    e[p, c]   the weighted error: sum over n of w (a - b)^2 / sum over n of w
    lost      e / (e + v), the mean over p by the weight of w: of each value by itself; of the
              scores together, e and v summed over them: most classes are in no sample at all

A class that never occurs and a position that is always background thus count for nothing. A box
counts by its own size: v is small where boxes are small. Where one of two scores speaks alone, as
the class of no object does, w is a quarter. An output loses the mean of its values' and scores'
losses, the outputs with scores their mean by the weight of w. The worst output is the model's.

One sample may hold most of the weight, a crowd among empty streets. So the score is also computed
without each sample: m and v are those of all samples, w, e and cosine of the others. The share of a
loss that one model recovers has a standard error, by the jackknife:

    g, g[n]   1 - (1 - close) / (1 - other) of all N samples, and without sample n
    error     sqrt((N - 1) / N * sum over n of (g[n] - mean of g[n])^2)

Where hardly any sample shows an object, the error is large. The background still tells, by the
cosine of the worst output: a switch that recovers enough of that helps too, unless g falls as much.

A distribution is compared before its Softmax (search.evaluator). The few deciding logits among a
thousand count little: where they are clipped, all others may come closer. So what loses
MAX_DISTRIBUTION_LOSS times as much of the distribution's cosine never helps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from npumake.kernels.measure import Agreement, agreement
from npumake.quant.search.argmax_ties import argmax_ties

MAX_DISTRIBUTION_LOSS = 2.0  # ratio; below it, a loss over few samples may be chance
FIDELITY_DIGITS = 6  # rounds away the last bits of a float engine
BOX_CHANNELS = 4

SampleOutputs = list[list[np.ndarray]]  # by sample and output
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class PositionalOutput:
    """An output with many positions: `usual` is m and `varied` v, shape (positions, channels)."""

    usual: Floats
    varied: Floats
    scores: npt.NDArray[np.bool_]  # whether each channel is a score

    def weight_root(self, output: np.ndarray) -> Floats:
        """The root of w of one sample, by this output's scores, (positions,)."""
        return np.sum((positions(output) - self.usual)[:, self.scores] ** 2, 1)

    def loss(self, e: Floats, weight: Floats) -> float:
        """The mean loss of values and scores; `weight` is the sum of w, (positions,)."""
        v, scores = self.varied, self.scores
        shares = []
        if not scores.all():
            shares.append(_share(e[:, ~scores], v[:, ~scores]).mean(1))
        if scores.any():
            shares.append(_share(e[:, scores].sum(1), v[:, scores].sum(1)))
        return float(_mean(np.mean(shares, 0), weight))


class Gain(NamedTuple):
    """The recovered share of another's loss, and its standard error."""

    share: float
    error: float


@dataclass(frozen=True)
class FidelitySamples:
    """The closeness over all samples, and without each of them in turn; empty for one sample."""

    all: float
    without: tuple[float, ...] = ()

    def gain(self, other: FidelitySamples) -> Gain:
        """The recovered share of the other's loss; 0 where the other loses nothing."""
        losses, other_losses = (1.0 - np.array([m.all, *m.without]) for m in (self, other))
        if not other_losses.all():
            return Gain(0.0, 0.0)
        g, *without = 1.0 - losses / other_losses
        return Gain(float(g), float(math.sqrt(max(len(without) - 1, 0)) * np.std(without or [g])))

    def keeps(self, other: FidelitySamples, errors: float) -> bool:
        """Whether it loses no more than the other, or no more than so many standard errors."""
        share, error = self.gain(other)
        return self.all >= other.all or (error > 0.0 and share >= -errors * error)


@dataclass(frozen=True)
class FidelityScore:
    """The closeness of the outputs, their cosine, that of distributions, and the argmax ties."""

    close: FidelitySamples
    cosine: FidelitySamples
    distributions: FidelitySamples = FidelitySamples(1.0)
    ties: int = 0
    int16: float = 0.0  # share of the multiply-accumulates that read int16

    @property
    def loss(self) -> float:
        """The geometric mean of both losses, the sort key."""
        return math.sqrt((1.0 - self.close.all) * (1.0 - self.cosine.all))

    def helps(self, other: FidelityScore, min_gain: float, errors: float = 1.0) -> bool:
        """Whether it recovers more than this share of the other's loss, by so many errors."""
        share, error = self.close.gain(other.close)
        by_cosine = self.cosine.gain(other.cosine)
        alike = share > -min_gain and by_cosine.share - errors * by_cosine.error > min_gain
        return (share - errors * error > min_gain or alike) and not self._spoils(other)

    def gives_back(self, other: FidelityScore, min_gain: float) -> bool:
        """Whether it recovers more than this share by both measures, whatever the error."""
        shares = self.close.gain(other.close).share, self.cosine.gain(other.cosine).share
        return min(shares) > min_gain and not self._spoils(other)

    def is_as_close(self, other: FidelityScore, errors: float) -> bool:
        """Whether it loses by no measure more than so many standard errors."""
        pairs = (self.close, other.close), (self.cosine, other.cosine)
        return all(own.keeps(its, errors) for own, its in pairs) and not self._spoils(other)

    def unties(self, other: FidelityScore, max_loss: float) -> bool:
        """Whether half of the ties are gone, and at most the share `max_loss` is lost otherwise."""
        is_alike = self.close.gain(other.close).share > -max_loss and not self._spoils(other)
        return 2 * self.ties <= other.ties != 0 and is_alike

    def gains(self, other: FidelityScore) -> bool:
        """Whether it gains by both measures, more than the standard error by closeness."""
        share, error = self.close.gain(other.close)
        return share > error and self.cosine.all > other.cosine.all

    def _spoils(self, other: FidelityScore) -> bool:
        loss, limit = (1.0 - score.distributions.all for score in (self, other))
        return loss > MAX_DISTRIBUTION_LOSS * limit


@dataclass(frozen=True)
class FloatReference:
    """The float model's outputs, to which others are compared."""

    real: SampleOutputs

    def figure(self, outputs: SampleOutputs) -> FidelityScore:
        """The score of other outputs for the same samples. Raises ValueError if shapes differ."""
        apart = self._cosine_losses(outputs)
        vectors = [loss for index, loss in enumerate(apart) if index not in self._fields]
        close = _measured([*vectors, *self._fields_lost(outputs)])
        return FidelityScore(close, _measured(apart), ties=self.ties(outputs))

    def cosine(self, outputs: SampleOutputs) -> FidelitySamples:
        """The worst cosine; 1 without outputs."""
        apart = self._cosine_losses(outputs)
        return _measured(apart) if apart else FidelitySamples(1.0)

    def ties(self, outputs: SampleOutputs) -> int:
        """The ties of all vector outputs."""
        vectors = [i for i in range(len(self.real[0])) if i not in self._fields]
        return sum(argmax_ties([a[i] for a in self.real], [b[i] for b in outputs]) for i in vectors)

    def _cosine_losses(self, outputs: SampleOutputs) -> list[Floats]:
        """The cosine loss of each output."""
        return [1.0 - self._cosine(outputs, index) for index in range(len(self.real[0]))]

    @cached_property
    def _fields(self) -> dict[int, PositionalOutput]:
        columns = enumerate(map(list, zip(*self.real, strict=True)))
        return {index: _field(column) for index, column in columns if _many(column)}

    @cached_property
    def _weights(self) -> dict[int, Floats]:
        """w by the number of positions, (samples, positions)."""
        by_count: dict[int, Floats] = {}
        for index, field in self._fields.items():
            count = len(field.usual)
            w = np.stack([field.weight_root(sample[index]) for sample in self.real])
            by_count[count] = by_count.get(count, 0.0) + w
        return {count: w**2 for count, w in by_count.items() if w.any()}

    @cached_property
    def _left_out(self) -> tuple[int | None, ...]:
        return (None, *range(len(self.real))) if len(self.real) > 1 else (None,)

    def _cosine(self, outputs: SampleOutputs, index: int) -> Floats:
        pairs = zip(self.real, outputs, strict=True)
        parts = list(enumerate(agreement(a[index], b[index]) for a, b in pairs))
        sums = (sum((p for n, p in parts if n != out), Agreement()) for out in self._left_out)
        return np.nan_to_num([total.cosine for total in sums], nan=-1.0)  # NaN is worst

    def _fields_lost(self, outputs: SampleOutputs) -> list[Floats]:
        """The loss of the outputs with scores together, and of each of the others."""
        weighted: list[tuple[Floats, Floats]] = []
        silent: list[Floats] = []
        for index, field in self._fields.items():
            count = len(field.usual)
            w = self._weights.get(count, np.ones((len(outputs), count)))
            loss = self._field_loss(outputs, index, w)
            if count in self._weights:
                weighted.append(
                    (loss, np.array([_without(w, out).sum() for out in self._left_out]))
                )
            else:
                silent.append(loss)
        if not weighted:
            return silent
        losses, weights = np.array(weighted).transpose(1, 0, 2)
        return [_mean(losses, weights), *silent]

    def _field_loss(self, outputs: SampleOutputs, index: int, w: Floats) -> Floats:
        """The loss of one output; w has the shape (samples, positions)."""
        field = self._fields[index]

        def error(n: int) -> Floats:  # computed twice: all samples at once need too much memory
            apart = positions(self.real[n][index]) - positions(outputs[n][index])
            return w[n, :, None] * apart**2

        total = sum((error(n) for n in range(len(outputs))), np.zeros_like(field.usual))
        losses = []
        for out in self._left_out:
            weight = _without(w, out)
            with np.errstate(invalid="ignore"):
                e = total if out is None else np.maximum(total - error(out), 0.0)
            losses.append(field.loss(e / np.where(weight, weight, 1.0)[:, None], weight))
        return np.array(losses)


def _measured(losses: Sequence[Floats]) -> FidelitySamples:
    """The closeness of the worst output."""
    first, *others = np.round(1.0 - np.max(losses, 0), FIDELITY_DIGITS).tolist()
    return FidelitySamples(first, tuple(others))


def positions(output: np.ndarray) -> Floats:
    """The output as (positions, channels).

    The channel axis is the shorter of the last two of three axes; of four the second, as in ONNX,
    unless the second and third are equal; otherwise the last.
    """
    dims = output.shape
    axis = output.ndim - 1
    if output.ndim == 3 and dims[1] < dims[2]:
        axis = 1
    if output.ndim == 4 and dims[1] != dims[2]:
        axis = 1
    return np.moveaxis(output, axis, -1).reshape(-1, dims[axis]).astype(np.float64)


def _many(column: Sequence[np.ndarray]) -> bool:
    """Whether the output has many positions, the same in every sample."""
    first = column[0]
    alike = {output.shape for output in column} == {first.shape}
    return alike and first.size > 0 and first.ndim > 1 and len(positions(first)) > 1


def _field(column: Sequence[np.ndarray]) -> PositionalOutput:
    usual = sum((positions(a) for a in column), np.zeros(1)) / len(column)
    if len(column) == 1:  # one sample: the mean over all positions
        usual = np.broadcast_to(usual.mean(0), usual.shape)
    varied = sum(((positions(a) - usual) ** 2 for a in column), np.zeros(1)) / len(column)
    low = np.min([positions(a).min(0) for a in column], 0)
    high = np.max([positions(a).max(0) for a in column], 0)
    scores = (low >= 0.0) & (high <= 1.0) & (len(low) != BOX_CHANNELS)
    return PositionalOutput(usual, varied, scores)


def _share(e: Floats, v: Floats) -> Floats:
    """e / (e + v): 0 where both are 0, 1 for NaN."""
    total = e + v
    with np.errstate(invalid="ignore"):
        return np.nan_to_num(e / np.where(total, total, 1.0), nan=1.0)


def _without(w: Floats, out: int | None) -> Floats:
    """The sum over all samples but one."""
    return w.sum(0) if out is None else np.delete(w, out, 0).sum(0)


def _mean(values: Floats, weights: Floats) -> Floats:
    """The weighted mean over the first axis; 0 without weights."""
    total = weights.sum(0)
    return (values * weights).sum(0) / np.where(total, total, 1.0)
