"""Is a model fed as it was trained? Its first BatchNormalization remembers.

A trained model keeps, per channel, the mean mu and the variance var of what that layer saw. Fed
the same way it sees mean m and variance s again, up to the choice of samples. How far apart two
such channels are is Jeffreys' divergence of two normal distributions:

    J = ((s + d²) / var + (var + d²) / s) / 2 - 1,  d = m - mu        distance = mean of ln(1 + J)

The distance is measured for the samples as they are, and for each known mistake undone. With

    v = x + offset, the raw value        z = (v - mean) * scale, what the model is given

a mistake is told when undoing it brings the distance below FITS and below its margin times the
distance as it is. Measured on detectors and classifiers fed photographs, 16 samples or more, a
right project stays above 0.65 for another layout and above 0.87 for other channels, while undoing a
wrong scale or layout gives at most 0.3. A model that hardly sees colour cannot tell RGB from BGR.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import NamedTuple

import numpy as np

from npumake.data.input_samples import ModelInput
from npumake.data.samples import Feed, Samples
from npumake.engine.ort import OrtSession
from npumake.errors import ProjectError, Route
from npumake.graph import Graph, array, attribute, is_float, is_foreign, shape
from npumake.project.sections import Input

FEWEST, MOST = 16, 64  # samples: fewer decide nothing, more decide nothing better
FITS = 0.5
TINY = 1e-12  # of a variance

Change = Callable[[np.ndarray, "Normalization"], np.ndarray]


@dataclass(frozen=True)
class Normalization:
    """Mean and scale, ready to be broadcast, and the axis of the channels; see above."""

    mean: np.ndarray
    scale: np.ndarray
    offset: float
    axis: int

    def given(self, v: np.ndarray) -> np.ndarray:
        return (v - self.mean) * self.scale

    def raw(self, z: np.ndarray) -> np.ndarray:
        return z / self.scale + self.mean


class TrainingStatistics(NamedTuple):
    """What a BatchNormalization saw in training, per channel, of the tensor `name`."""

    name: str
    mean: np.ndarray
    variance: np.ndarray


class Mistake(NamedTuple):
    """`undone` gives, of raw values v, what the model should have been given."""

    what: str
    advice: str
    margin: float
    undone: Change


def _other_layout(v: np.ndarray, fed: Normalization) -> np.ndarray:
    """The values in the order of the file, read with the channels at the other end."""
    n, *inner = v.shape
    if fed.axis == 1:
        channels, height, width = inner
        return fed.given(v.reshape(n, height, width, channels).transpose(0, 3, 1, 2))
    height, width, channels = inner
    return fed.given(v.reshape(n, channels, height, width).transpose(0, 2, 3, 1))


MISTAKES = (
    Mistake(
        "the values are 255 times too large",
        "`scale` lacks 1/255, or `mean` is meant for values of 0..1",
        0.5,
        lambda v, fed: fed.given(v / 255),
    ),
    Mistake(
        "the values are 255 times too small",
        "samples of 0..1 need `values: 0..255`, or a `scale` that is not divided by 255 again",
        0.5,
        lambda v, fed: fed.given(v * 255),
    ),
    Mistake(
        "mean and scale are applied twice",
        "the samples are normalised already: leave `mean` and `scale` to `inputs:` alone",
        0.5,
        lambda v, _: v,
    ),
    Mistake(
        "the values are not normalised",
        "the model wants -1..1: `mean: 127.5` and `scale: 0.00784314`",
        0.5,
        lambda v, _: v / 127.5 - 1,
    ),
    Mistake(
        "the channels are in another place",
        "the other `layout` fits, or another order of the axes in the files",
        0.5,
        _other_layout,
    ),
    Mistake(
        "red and blue are swapped",
        "the other `channels` fit, or `rgb2bgr` among the transforms",
        0.85,
        lambda v, fed: np.flip(fed.given(v), fed.axis),
    ),
)


def preprocessing_mistake(
    graph: Graph, samples: Samples, name: str, how: Input, offset: float
) -> Mistake | None:
    """What is wrong with how the image input `name` is fed; None when nothing is, or none can tell.

    `graph` is original_float, with its preprocessing; `offset` is what was taken off the samples.
    """
    value = next(value for value in graph.inputs if value.name == name)
    memory = _remembered(graph)
    fed = fed_as(how, offset)
    if memory is None or len(samples) < FEWEST or len(shape(value)) != 4 or not is_float(value):
        return None
    if not np.all(fed.scale):
        return None
    chosen = np.linspace(0, len(samples) - 1, min(len(samples), MOST)).astype(int)
    feeds = [samples.read(index) for index in chosen]
    as_it_is, *undone = _distances(graph, memory, feeds, name, fed)
    best = int(np.argmin(undone))
    is_told = undone[best] < min(FITS, MISTAKES[best].margin * as_it_is)
    return MISTAKES[best] if is_told else None


def refuse_mistake(graph: Graph, samples: Samples, given: ModelInput) -> None:
    """Raises ProjectError for a mistake in how `given` is fed, with what to do about it."""
    name, offset = given.name, given.spec.offset
    if name not in (value.name for value in graph.inputs):
        return  # planes stand in its place
    mistake = preprocessing_mistake(graph, samples, name, given.section, offset)
    if mistake is None:
        return
    raise ProjectError(
        f"input `{name}` is not fed as the model was trained: {mistake.what}",
        Route(f"inputs.{name}"),
        f"{mistake.advice}; or `allow: [preprocessing]` under `data:`",
    )


def distance(m: np.ndarray, s: np.ndarray, mu: np.ndarray, var: np.ndarray) -> float:
    """Of the measured mean and variance per channel from the remembered ones; 0 when equal."""
    s, var, d2 = s + TINY, var + TINY, np.square(m - mu)
    jeffreys = ((s + d2) / var + (var + d2) / s) / 2 - 1
    return float(np.log1p(jeffreys).mean())


def _remembered(graph: Graph) -> TrainingStatistics | None:
    """Of the first BatchNormalization whose memory is in the file."""
    before = takewhile(lambda node: not is_foreign(node), graph.nodes())  # runs no user's Python
    for node in before:
        if node.op_type != "BatchNormalization" or node.domain:
            continue
        read, *_, mu, var = node.inputs[:5]
        mean, variance = array(mu), array(var)
        if read is not None and mean is not None and variance is not None:
            epsilon = attribute(node, "epsilon", 1e-5)
            return TrainingStatistics(
                str(read.name), mean.astype(float), variance.astype(float) + epsilon
            )
    return None


def fed_as(how: Input, offset: float) -> Normalization:
    axis = 3 if how.layout == "NHWC" else 1
    spread = [-1 if index == axis else 1 for index in range(4)]
    mean, scale = (np.asarray(given, np.float64).reshape(-1) for given in (how.mean, how.scale))
    return Normalization(mean.reshape(spread), scale.reshape(spread), offset, axis)


def _distances(
    graph: Graph, memory: TrainingStatistics, feeds: Sequence[Feed], name: str, fed: Normalization
) -> list[float]:
    """The distance as the samples are, then with each mistake undone."""
    watched = graph.copy()
    watched.expose([memory.name])
    watched.drop_unused()
    session = OrtSession(watched.to_bytes())
    found = []
    for mistake in (None, *MISTAKES):
        m, s = _moments(session, [_changed(feed, name, mistake, fed) for feed in feeds])
        found.append(distance(m, s, memory.mean, memory.variance))
    return found


def _changed(feed: Feed, name: str, mistake: Mistake | None, fed: Normalization) -> Feed:
    x = feed[name]
    if mistake is None:
        return feed
    z = mistake.undone(x.astype(np.float64) + fed.offset, fed)
    return {**feed, name: (fed.raw(z) - fed.offset).astype(x.dtype)}


def _moments(session: OrtSession, feeds: Sequence[Feed]) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance per channel (axis 1) of the watched tensor over all feeds."""
    sums = []
    for feed in feeds:
        (made,) = session.run(None, feed)
        rows = np.moveaxis(made.astype(np.float64), 1, 0).reshape(made.shape[1], -1)
        sums.append((rows.mean(1), np.square(rows).mean(1)))
    m, square = (np.mean(part, 0) for part in zip(*sums, strict=True))
    return m, np.maximum(square - np.square(m), 0)
