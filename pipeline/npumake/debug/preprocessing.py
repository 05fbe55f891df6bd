"""Detects preprocessing that differs from training, by the first BatchNormalization.

That layer stores, per channel, the mean mu and the variance var of its inputs in training. With the
same preprocessing, its inputs have mean m and variance s close to them. The distance of a channel
is Jeffreys' divergence of two normal distributions:

    J = ((s + d²) / var + (var + d²) / s) / 2 - 1,  d = m - mu        distance = mean of ln(1 + J)

The distance is measured for the samples as they are, and with each known mistake undone. With

    v = x + offset, the raw value        z = (v - mean) * scale, the model's input

a mistake is reported if undoing it moves the distance below MAX_FIT_DISTANCE and below its margin
times the original distance. On detectors and classifiers with 16 photographs or more, a correct
project stays above 0.65 for another layout and above 0.87 for swapped channels; undoing a wrong
scale or layout gives at most 0.3. A model that hardly uses color does not distinguish RGB from BGR.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import NamedTuple

import numpy as np

from npumake.data.input_samples import ModelInput
from npumake.data.samples import Feed, Samples
from npumake.engine.float_session import FloatSession
from npumake.engine.ort import OrtSession
from npumake.errors import ProjectError, Route
from npumake.graph import Graph, array, attribute, is_float, is_foreign, shape
from npumake.project.sections import Input

MIN_SAMPLES, MAX_SAMPLES = 16, 64  # fewer are unreliable, more gain nothing
MAX_FIT_DISTANCE = 0.5
VARIANCE_EPSILON = 1e-12  # added to variances

Change = Callable[[np.ndarray, "InputNormalization"], np.ndarray]


@dataclass(frozen=True)
class InputNormalization:
    """Mean and scale in broadcast shape, the offset of the samples, and the channel axis."""

    mean: np.ndarray
    scale: np.ndarray
    offset: float
    axis: int

    def normalized(self, v: np.ndarray) -> np.ndarray:
        return (v - self.mean) * self.scale

    def raw(self, z: np.ndarray) -> np.ndarray:
        return z / self.scale + self.mean


class TrainingStatistics(NamedTuple):
    """Per-channel mean and variance of the tensor `name` in training."""

    name: str
    mean: np.ndarray
    variance: np.ndarray


class Mistake(NamedTuple):
    """`undone` computes the correct model input from raw values v."""

    what: str
    advice: str
    margin: float
    undone: Change


def _other_layout(v: np.ndarray, normalization: InputNormalization) -> np.ndarray:
    """The file's values read in the other layout, channels first or last."""
    n, *inner = v.shape
    if normalization.axis == 1:
        channels, height, width = inner
        return normalization.normalized(v.reshape(n, height, width, channels).transpose(0, 3, 1, 2))
    height, width, channels = inner
    return normalization.normalized(v.reshape(n, channels, height, width).transpose(0, 2, 3, 1))


MISTAKES = (
    Mistake(
        "the values are 255 times too large",
        "`scale` lacks 1/255, or `mean` is meant for values of 0..1",
        0.5,
        lambda v, normalization: normalization.normalized(v / 255),
    ),
    Mistake(
        "the values are 255 times too small",
        "samples of 0..1 need `values: 0..255`, or a `scale` that is not divided by 255 again",
        0.5,
        lambda v, normalization: normalization.normalized(v * 255),
    ),
    Mistake(
        "mean and scale are applied twice",
        "the samples are normalized already: leave `mean` and `scale` to `inputs:` alone",
        0.5,
        lambda v, _: v,
    ),
    Mistake(
        "the values are not normalized",
        "the model expects -1..1: `mean: 127.5` and `scale: 0.00784314`",
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
        lambda v, normalization: np.flip(normalization.normalized(v), normalization.axis),
    ),
)


def preprocessing_mistake(
    graph: Graph, samples: Samples, name: str, how: Input, offset: float
) -> Mistake | None:
    """The mistake in the preprocessing of the image input `name`; None if there is none or the
    model cannot show it.

    `graph` is original_float, with its preprocessing; `offset` was subtracted from the samples.
    """
    value = next(value for value in graph.inputs if value.name == name)
    memory = training_statistics(graph)
    normalization = normalization_of(how, offset)
    if (
        memory is None
        or len(samples) < MIN_SAMPLES
        or len(shape(value)) != 4
        or not is_float(value)
    ):
        return None
    if not np.all(normalization.scale):
        return None
    chosen = np.linspace(0, len(samples) - 1, min(len(samples), MAX_SAMPLES)).astype(int)
    feeds = [samples.read(index) for index in chosen]
    as_it_is, *undone = _distances(graph, memory, feeds, name, normalization)
    best = int(np.argmin(undone))
    is_told = undone[best] < min(MAX_FIT_DISTANCE, MISTAKES[best].margin * as_it_is)
    return MISTAKES[best] if is_told else None


def refuse_mistake(graph: Graph, samples: Samples, model_input: ModelInput, allowance: str) -> None:
    """Raises ProjectError for a preprocessing mistake of `model_input`; its hint has a fix and
    `allowance`, the key that lets it pass."""
    name, offset = model_input.name, model_input.spec.offset
    if name not in (value.name for value in graph.inputs):
        return  # planes replace it
    mistake = preprocessing_mistake(graph, samples, name, model_input.section, offset)
    if mistake is None:
        return
    raise ProjectError(
        f"the preprocessing of input `{name}` differs from training: {mistake.what}",
        Route(f"inputs.{name}"),
        f"{mistake.advice}; or {allowance}",
    )


def distance(m: np.ndarray, s: np.ndarray, mu: np.ndarray, var: np.ndarray) -> float:
    """Mean ln(1 + J) between measured (m, s) and training (mu, var) statistics, each (channels,);
    0 if equal."""
    s, var, d2 = s + VARIANCE_EPSILON, var + VARIANCE_EPSILON, np.square(m - mu)
    jeffreys = ((s + d2) / var + (var + d2) / s) / 2 - 1
    return float(np.log1p(jeffreys).mean())


def training_statistics(graph: Graph) -> TrainingStatistics | None:
    """The statistics of the first BatchNormalization with constant parameters."""
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


def normalization_of(how: Input, offset: float) -> InputNormalization:
    axis = 3 if how.layout == "NHWC" else 1
    spread = [-1 if index == axis else 1 for index in range(4)]
    mean, scale = (np.asarray(vector, np.float64).reshape(-1) for vector in (how.mean, how.scale))
    return InputNormalization(mean.reshape(spread), scale.reshape(spread), offset, axis)


def _distances(
    graph: Graph,
    memory: TrainingStatistics,
    feeds: Sequence[Feed],
    name: str,
    normalization: InputNormalization,
) -> list[float]:
    """The distance of the samples as they are, then with each mistake undone."""
    watched = graph.copy()
    watched.expose([memory.name])
    watched.drop_unused()
    session = OrtSession(watched.to_bytes())
    distances = []
    for mistake in (None, *MISTAKES):
        m, s = moments(session, [_changed(feed, name, mistake, normalization) for feed in feeds])
        distances.append(distance(m, s, memory.mean, memory.variance))
    return distances


def _changed(
    feed: Feed, name: str, mistake: Mistake | None, normalization: InputNormalization
) -> Feed:
    x = feed[name]
    if mistake is None:
        return feed
    z = mistake.undone(x.astype(np.float64) + normalization.offset, normalization)
    return {**feed, name: (normalization.raw(z) - normalization.offset).astype(x.dtype)}


def moments(session: FloatSession, feeds: Sequence[Feed]) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance per channel (axis 1) of the observed tensor over all feeds."""
    sums = []
    for feed in feeds:
        (output,) = session.run(None, feed)
        rows = np.moveaxis(output.astype(np.float64), 1, 0).reshape(output.shape[1], -1)
        sums.append((rows.mean(1), np.square(rows).mean(1)))
    m, square = (np.mean(part, 0) for part in zip(*sums, strict=True))
    return m, np.maximum(square - np.square(m), 0)
