"""Ranks preprocessing variants of a classifier, for models without BatchNormalization statistics.

A classifier with correct preprocessing gives similar outputs for a picture and its mirrored,
shifted copy, and different ones for another picture. With outputs p_i for picture i, q_i for its
copy, and <p, q> = sum sqrt(p q), which is 1 if they are equal:

    sharpness = mean of <p_i, q_i>  -  mean of <p_i, q_j>, i not j

It is measured for the project's preprocessing, and for each common normalization with red and blue
as they are and swapped. A variant is better if the project's sharpness is below CLEAR_RATIO times
the variant's, and that is above MIN_SHARPNESS. Confidence would not work: large inputs make every
output confident. On photographs, models of 1,000 classes are sharpest with correct preprocessing,
color order included; correct projects reach 0.8 of the best or more. Mirroring confuses digit
classifiers in all variants alike, so the comparison stays fair.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from npumake.data.samples import Feed, Samples
from npumake.debug.preprocessing import InputNormalization, normalization_of
from npumake.engine.float_session import FloatSession, float_session
from npumake.graph import Graph, Value, is_float, shape
from npumake.kernels.arrays import Floats
from npumake.project.sections import Input

MAX_SAMPLES, MIN_SAMPLES = 24, 8  # samples
CLEAR_RATIO = 0.6
MIN_SHARPNESS = 0.5  # two classes never reach it, so nothing is reported for them
SHIFT_DIVISOR = 16  # pictures are shifted by height and width over this
MEANS = np.array([123.675, 116.28, 103.53])  # of ImageNet's red, green and blue
SCALES = 1 / np.array([58.395, 57.12, 57.375])


class FeedVariant(NamedTuple):
    """A normalization of raw values 0..255, and its YAML; `colors` limits it to inputs with so
    many channels."""

    yaml: str
    normalize: Callable[[Floats, InputNormalization], Floats]
    colors: int = 0  # 0: any


class SharpnessTrial(NamedTuple):
    """The sharpness of one variant; `yaml` is empty for the project's own."""

    yaml: str
    sharpness: float


def _imagenet(v: Floats, normalization: InputNormalization) -> Floats:
    spread = [-1 if index == normalization.axis else 1 for index in range(v.ndim)]
    return (v - MEANS.reshape(spread)) * SCALES.reshape(spread)


FEED_VARIANTS = (
    FeedVariant("mean: 0, scale: 1", lambda v, _: v),
    FeedVariant("mean: 0, scale: 0.00392157", lambda v, _: v / 255),
    FeedVariant("mean: 127.5, scale: 0.00784314", lambda v, _: v / 127.5 - 1),
    FeedVariant("mean: 127.5, scale: 1", lambda v, _: v - 127.5),
    FeedVariant(
        "mean: [123.675, 116.28, 103.53], scale: [0.0171248, 0.0175070, 0.0174292]",
        _imagenet,
        colors=3,
    ),
)
SWAPPED = ", red and blue swapped"


def sharpest(
    graph: Graph, samples: Samples, name: str, how: Input, offset: float
) -> tuple[SharpnessTrial, ...]:
    """All variants, sharpest first; empty unless the model maps one picture to one output of two
    classes or more. `graph` is original_float, with its preprocessing; `offset` was subtracted
    from the samples. Raises GraphError."""
    (value,) = (value for value in graph.inputs if value.name == name)
    normalization = normalization_of(how, offset)
    if not _can_tell(graph, value) or len(samples) < MIN_SAMPLES or not np.all(normalization.scale):
        return ()
    chosen = np.linspace(0, len(samples) - 1, min(len(samples), MAX_SAMPLES)).astype(int)
    feeds = [samples.read(index) for index in chosen]
    raw = [feed[name].astype(np.float64) + offset for feed in feeds]
    if max(float(v.max()) for v in raw) <= 1.0:
        raw = [v * 255 for v in raw]
    session = float_session(graph)
    trials = [
        SharpnessTrial("", _sharpness(session, feeds, mirrored(feeds, name, normalization.axis)))
    ]
    for variant in FEED_VARIANTS:
        if variant.colors not in (0, raw[0].shape[normalization.axis]):
            continue
        for swapped in (False, True) if raw[0].shape[normalization.axis] == 3 else (False,):
            inputs = [
                variant.normalize(np.flip(v, normalization.axis) if swapped else v, normalization)
                for v in raw
            ]
            changed = [
                _feed_for(feed, name, z, normalization)
                for feed, z in zip(feeds, inputs, strict=True)
            ]
            score = _sharpness(session, changed, mirrored(changed, name, normalization.axis))
            trials.append(SharpnessTrial(variant.yaml + SWAPPED * swapped, score))
    return tuple(sorted(trials, key=lambda trial: -trial.sharpness))


def clearly_better(trials: Sequence[SharpnessTrial]) -> SharpnessTrial | None:
    """The sharpest variant, if the project's own is clearly worse."""
    if not trials or trials[0].sharpness < MIN_SHARPNESS:
        return None
    (own,) = (trial for trial in trials if not trial.yaml)
    return trials[0] if own.sharpness < CLEAR_RATIO * trials[0].sharpness else None


def _can_tell(graph: Graph, value: Value) -> bool:
    shapes = [shape(output) for output in graph.outputs]
    is_one = len(shapes) == 1 and len([size for size in shapes[0] if size > 1]) == 1
    return is_one and len(graph.inputs) == 1 and len(shape(value)) == 4 and is_float(value)


def _feed_for(feed: Feed, name: str, z: Floats, normalization: InputNormalization) -> Feed:
    """The feed that gives the model the input z after its own preprocessing."""
    return {**feed, name: (normalization.raw(z) - normalization.offset).astype(feed[name].dtype)}


def mirrored(feeds: Sequence[Feed], name: str, channels: int) -> list[Feed]:
    """The feeds, pictures mirrored and shifted; `channels` is the axis of the channels."""
    high, wide = (axis for axis in (1, 2, 3) if axis != channels)
    shifted: list[Feed] = []
    for feed in feeds:
        x = np.flip(feed[name], wide)
        by = [max(x.shape[axis] // SHIFT_DIVISOR, 1) for axis in (high, wide)]
        shifted.append({**feed, name: np.ascontiguousarray(np.roll(x, by, (high, wide)))})
    return shifted


def _sharpness(session: FloatSession, feeds: Sequence[Feed], moved: Sequence[Feed]) -> float:
    p, q = (
        np.sqrt([probabilities(session.run(None, feed)[0]) for feed in variant])
        for variant in (feeds, moved)
    )
    return agreement(p, q)


def agreement(p: Floats, q: Floats) -> float:
    """The sharpness of n pictures and their copies: square roots of outputs, (n, k) each."""
    agree, n = p @ q.T, len(p)
    agreement = float(np.trace(agree))
    return agreement / n - (float(agree.sum()) - agreement) / (n * (n - 1))


def probabilities(output: np.ndarray) -> Floats:
    """A classifier's output as probabilities (k,); logits go through a softmax."""
    x = np.nan_to_num(output.astype(np.float64).ravel())
    if np.all(x >= 0) and abs(float(x.sum()) - 1) < 0.02:
        return x
    e = np.exp(x - x.max())
    return np.asarray(e / e.sum())
