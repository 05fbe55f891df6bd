"""Which way of feeding a classifier suits it? A hint for models without a memory of their training.

A classifier that is fed as it was trained says the same of a picture and of the same picture
mirrored and moved a little, and something else of another picture. With p_i its answer to picture
i, q_i that to the moved one, and <p, q> = sum sqrt(p q), which is 1 where they are equal:

    sharpness = mean of <p_i, q_i>  -  mean of <p_i, q_j>, i not j

It is measured as the project feeds the model, and for each usual way of normalising the raw values,
with red and blue as they are and swapped. Another way is told to be better where the sharpness as
it is is less than CLEAR of it, and it is sharp at all. That of confidence would not do: large
values make every answer confident. Measured on photographs, models of 1,000 classes are sharpest
fed right, red and blue included, and any right project has 0.8 of the best or more. A model that
sees digits mirrored is as much at a loss either way, so that the comparison stays fair.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from npumake.data.samples import Feed, Samples
from npumake.debug.preprocessing import Normalization, normalization_of
from npumake.engine.float_session import FloatSession, float_session
from npumake.graph import Graph, Value, is_float, shape
from npumake.kernels.arrays import Floats
from npumake.project.sections import Input

MAX_SAMPLES, MIN_SAMPLES = 24, 8  # samples
CLEAR_RATIO = 0.6
MIN_SHARPNESS = 0.5  # two classes never are: no way of feeding is told of them
SHIFT_DIVISOR = 16  # of its height and width a picture is moved by one
MEANS = np.array([123.675, 116.28, 103.53])  # of ImageNet's red, green and blue
SCALES = 1 / np.array([58.395, 57.12, 57.375])


class FeedVariant(NamedTuple):
    """Of raw values 0..255 what the model is given, and the YAML that says so."""

    yaml: str
    normalize: Callable[[Floats, Normalization], Floats]
    colours: int = 0  # that it is for, where it is for so many only


class SharpnessTrial(NamedTuple):
    """`yaml` is empty for the project's own."""

    yaml: str
    sharpness: float


def _imagenet(v: Floats, normalization: Normalization) -> Floats:
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
        colours=3,
    ),
)
SWAPPED = ", red and blue swapped"


def sharpest(
    graph: Graph, samples: Samples, name: str, how: Input, offset: float
) -> tuple[SharpnessTrial, ...]:
    """Every way, the sharpest first; none where the answers cannot tell: the model must give one
    answer of two classes or more to one picture. `graph` is original_float, with its
    preprocessing; `offset` is what was taken off the samples. Raises GraphError."""
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
        SharpnessTrial("", _sharpness(session, feeds, _moved(feeds, name, normalization.axis)))
    ]
    for variant in FEED_VARIANTS:
        if variant.colours not in (0, raw[0].shape[normalization.axis]):
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
            score = _sharpness(session, changed, _moved(changed, name, normalization.axis))
            trials.append(SharpnessTrial(variant.yaml + SWAPPED * swapped, score))
    return tuple(sorted(trials, key=lambda trial: -trial.sharpness))


def clearly_better(trials: Sequence[SharpnessTrial]) -> SharpnessTrial | None:
    """The sharpest, where the project's own way is far from it."""
    if not trials or trials[0].sharpness < MIN_SHARPNESS:
        return None
    (own,) = (trial for trial in trials if not trial.yaml)
    return trials[0] if own.sharpness < CLEAR_RATIO * trials[0].sharpness else None


def _can_tell(graph: Graph, value: Value) -> bool:
    answers = [shape(answer) for answer in graph.outputs]
    is_one = len(answers) == 1 and len([size for size in answers[0] if size > 1]) == 1
    return is_one and len(graph.inputs) == 1 and len(shape(value)) == 4 and is_float(value)


def _feed_for(feed: Feed, name: str, z: Floats, normalization: Normalization) -> Feed:
    """What to feed for the model to be given z."""
    return {**feed, name: (normalization.raw(z) - normalization.offset).astype(feed[name].dtype)}


def _moved(feeds: Sequence[Feed], name: str, channels: int) -> list[Feed]:
    high, wide = (axis for axis in (1, 2, 3) if axis != channels)
    shifted: list[Feed] = []
    for feed in feeds:
        x = np.flip(feed[name], wide)
        by = [max(x.shape[axis] // SHIFT_DIVISOR, 1) for axis in (high, wide)]
        shifted.append({**feed, name: np.ascontiguousarray(np.roll(x, by, (high, wide)))})
    return shifted


def _sharpness(session: FloatSession, feeds: Sequence[Feed], moved: Sequence[Feed]) -> float:
    p, q = (np.sqrt([_probabilities(session, feed) for feed in each]) for each in (feeds, moved))
    agree, n = p @ q.T, len(p)
    same = float(np.trace(agree))
    return same / n - (float(agree.sum()) - same) / (n * (n - 1))


def _probabilities(session: FloatSession, feed: Feed) -> Floats:
    """As probabilities, which logits are not yet."""
    (output,) = session.run(None, feed)
    x = np.nan_to_num(output.astype(np.float64).ravel())
    if np.all(x >= 0) and abs(float(x.sum()) - 1) < 0.02:
        return x
    e = np.exp(x - x.max())
    return np.asarray(e / e.sum())
