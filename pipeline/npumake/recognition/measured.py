"""How well the float model does on the pictures, for each way to feed it.

Two measures, as `npumake debug inputs` and the `preprocessing` finding have them:

    distance    of the first BatchNormalization's inputs to its stored statistics; 0 is best
    sharpness   how alike the outputs of a picture and its mirrored copy are, and how unlike those
                of two pictures; 1 is best

For sharpness a classifier answers with its probabilities p, any other model with the highest score
of each channel over all places. Logits go through a softmax, or a sigmoid of each channel.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from npumake.debug.preprocessing import TrainingStatistics, distance, moments, training_statistics
from npumake.debug.sharpness import agreement, mirrored, probabilities
from npumake.engine.float_session import FloatSession, float_session
from npumake.kernels.arrays import Floats
from npumake.kernels.boxes import sigmoid
from npumake.recognition.facts import ModelFacts, classes_of
from npumake.recognition.feeds import PictureFeed

MIN_PICTURES, MAX_PICTURES = 8, 24
MIN_LARGE_PIXELS, FEW_PICTURES = (
    300 * 300,
    10,
)  # pixels; so many pictures of an input that large, or of maps


class FeedTrial(NamedTuple):
    """`distance` is None for a model without the statistics."""

    feed: PictureFeed
    sharpness: float
    distance: float | None


def usable(count: int, facts: ModelFacts) -> int:
    """How many of `count` pictures are measured; 0 if there are too few."""
    height, width = facts.image.size
    is_large = height * width > MIN_LARGE_PIXELS or not classes_of(facts)
    max_pictures = FEW_PICTURES if is_large else MAX_PICTURES
    return min(count, max_pictures) if count >= MIN_PICTURES else 0


def measured(
    facts: ModelFacts, pictures: Sequence[Floats], feeds: Sequence[PictureFeed]
) -> tuple[FeedTrial, ...]:
    """A trial of each feed. `pictures` are (height, width, channels), 0..255, red first, of the
    input's size. Raises GraphError if the model does not run."""
    statistics = training_statistics(facts.graph)
    session = float_session(facts.graph)
    watched = _watched(facts, statistics) if statistics else None
    trials: dict[tuple[float, ...], FeedTrial] = {}
    for feed in feeds:
        key = _rounded(feed)
        if key not in trials:
            inputs = [model_input(picture, feed, facts) for picture in pictures]
            sharp = _sharpness(session, facts, inputs)
            far = _distance(watched, statistics, facts, inputs) if watched and statistics else None
            trials[key] = FeedTrial(feed, sharp, far)
    return tuple(trials[_rounded(feed)]._replace(feed=feed) for feed in feeds)


def model_input(picture: Floats, feed: PictureFeed, facts: ModelFacts) -> Floats:
    """The model's input of a picture, (1, channels, h, w) or (1, h, w, channels), float32."""
    ordered = picture[..., ::-1] if feed.colors == "bgr" else picture
    values = (ordered - np.array(feed.mean)) * np.array(feed.scale)
    picture_input = values if facts.image.is_nhwc else values.transpose(2, 0, 1)
    return np.ascontiguousarray(picture_input[None].astype(np.float32))


def _rounded(feed: PictureFeed) -> tuple[float, ...]:
    """Equal for feeds that differ by about a hundredth, too little for the measures."""
    low, high = feed.normalization.reach
    size = 10 ** np.floor(np.log10(high - low))
    by_color = float(feed.normalization.by_color)
    is_bgr = float(feed.colors == "bgr")
    return round(low / size, 1), round(high / size, 1), by_color, is_bgr


def _sharpness(session: FloatSession, facts: ModelFacts, inputs: Sequence[Floats]) -> float:
    name, channels = facts.image.name, 3 if facts.image.is_nhwc else 1
    feeds = [{name: x} for x in inputs]
    p, q = (
        np.sqrt([_scores(session.run(None, feed)) for feed in variant])
        for variant in (feeds, mirrored(feeds, name, channels))
    )
    return agreement(p, q)


def _scores(outputs: Sequence[np.ndarray]) -> Floats:
    if len(outputs) == 1 and outputs[0].size == max(outputs[0].shape, default=1):
        return probabilities(outputs[0])
    return np.concatenate([_highest(np.nan_to_num(output)) for output in outputs])


def _highest(output: np.ndarray) -> Floats:
    """The highest score per channel, which is the shorter axis of [1, n, channels], or axis 1."""
    rows = output.reshape(output.shape[0], output.shape[1], -1)[0] if output.ndim > 2 else output
    if output.ndim == 3 and rows.shape[0] > rows.shape[1]:
        rows = rows.T
    best = rows.astype(np.float64).max(1)
    return best if rows.min() >= 0 and rows.max() <= 1 else sigmoid(best)


def _watched(facts: ModelFacts, statistics: TrainingStatistics) -> FloatSession:
    graph = facts.graph.copy()
    graph.expose([statistics.name])
    graph.drop_unused()
    return float_session(graph)


def _distance(
    watched: FloatSession,
    statistics: TrainingStatistics,
    facts: ModelFacts,
    inputs: Sequence[Floats],
) -> float:
    m, s = moments(watched, [{facts.image.name: x} for x in inputs])
    return distance(m, s, statistics.mean, statistics.variance)
