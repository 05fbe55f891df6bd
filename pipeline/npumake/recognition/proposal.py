"""The proposal: family, declared normalization and measurement joined, with evidence and doubts.

declared by the file             taken as it is
distance to the statistics       decides if the model has a BatchNormalization
sharpness                        decides among a family's feeds, and warns of a clearly better one
else                             the family's most common feed, with a doubt
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from npumake.debug.preprocessing import MAX_FIT_DISTANCE, training_statistics
from npumake.debug.sharpness import CLEAR_RATIO
from npumake.kernels.arrays import Floats
from npumake.recognition.declared import declared
from npumake.recognition.facts import ModelFacts, classes_of
from npumake.recognition.families import family_of
from npumake.recognition.feeds import PictureFeed, candidates
from npumake.recognition.measured import FeedTrial, measured
from npumake.recognition.recognized import DeclaredFeed, Family

TIE_RATIO = 1.05  # sharpness within it counts as equal
CLEARLY_CLOSER = 0.85  # times the distance
MIN_CLASSES = 5  # fewer never make sharp outputs
MIN_SHARPNESS = 0.1  # sharpness below it is inconclusive
OPEN_FAMILIES = (
    "Caffe",
    "vision transformer",
    "torchvision, timm",
    "Keras",
    "unknown",
    "TensorFlow",
)


@dataclass(frozen=True)
class Proposal:
    """`evidence` and `doubts` are sentences for a person; no doubt means sure."""

    name: str
    family: Family
    feed: PictureFeed
    evidence: tuple[str, ...]
    doubts: tuple[str, ...] = ()
    trials: tuple[FeedTrial, ...] = field(default=())


def proposal(facts: ModelFacts, pictures: Sequence[Floats]) -> Proposal:
    """`pictures` are what the transforms of the family make, (h, w, channels), 0..255; none if
    there are too few to measure. Raises GraphError if the model does not run."""
    name, family = family_of(facts)
    stated = declared(facts)
    if family.is_declared:
        return Proposal(name, family, family.feeds[0], (family.evidence,), family.doubts)
    feeds = _feeds(facts, family, stated)
    trials = (
        measured(facts, pictures, feeds) if pictures and _may_decide(name, facts, feeds) else ()
    )
    if stated is not None:
        return _of_declared(name, family, stated, trials)
    return _of_family(name, family, trials, classes_of(facts))


def _feeds(
    facts: ModelFacts, family: Family, stated: DeclaredFeed | None
) -> tuple[PictureFeed, ...]:
    if stated is None:
        return tuple(dict.fromkeys((*family.feeds, *candidates(facts.image.channels))))
    if stated.sets_color or facts.image.channels == 1:
        return (stated.feed,)
    normalization = stated.feed.normalization
    return PictureFeed(normalization, "rgb"), PictureFeed(normalization, "bgr")


def _may_decide(name: str, facts: ModelFacts, feeds: Sequence[PictureFeed]) -> bool:
    """Whether a measurement could change the feed or confirm it."""
    is_open = name in OPEN_FAMILIES or training_statistics(facts.graph) is not None
    return len(feeds) > 1 and is_open


def _of_declared(
    name: str, family: Family, stated: DeclaredFeed, trials: Sequence[FeedTrial]
) -> Proposal:
    """The declared normalization; its color order is the family's, or else measured."""
    evidence, feed = (family.evidence, stated.evidence), stated.feed
    if stated.sets_color or feed.colors == "gray":
        return Proposal(name, family, feed, evidence, family.doubts)
    if name not in OPEN_FAMILIES:
        feed = PictureFeed(feed.normalization, family.feeds[0].colors)
        return Proposal(name, family, feed, evidence, family.doubts, tuple(trials))
    feed, words, doubts = _colored(feed, trials)
    return Proposal(
        name, family, feed, (*evidence, *words), (*family.doubts, *doubts), tuple(trials)
    )


def _of_family(name: str, family: Family, trials: Sequence[FeedTrial], classes: int) -> Proposal:
    if not trials and _is_settled(name, family):
        evidence = (family.evidence, "mean and scale are those of the family's own demo")
        return Proposal(name, family, family.feeds[0], evidence, family.doubts)
    if not trials:
        doubts = (*family.doubts, _unmeasured(family))
        return Proposal(name, family, family.feeds[0], (family.evidence,), doubts)
    if trials[0].distance is not None and min(t.distance or 0 for t in trials) < MAX_FIT_DISTANCE:
        return _by_distance(name, family, trials)
    is_classifier = classes >= MIN_CLASSES
    if (classes and not is_classifier) or max(t.sharpness for t in trials) < MIN_SHARPNESS:
        doubts = () if _is_settled(name, family) else (_unmeasured(family),)
        return Proposal(
            name,
            family,
            family.feeds[0],
            (family.evidence,),
            (*family.doubts, *doubts),
            tuple(trials),
        )
    return _by_sharpness(name, family, trials, is_classifier)


def _is_settled(name: str, family: Family) -> bool:
    return name not in OPEN_FAMILIES and len(family.feeds) == 1


def _unmeasured(family: Family) -> str:
    others = ", or ".join(f"({feed.words})" for feed in family.feeds[1:3])
    return "mean and scale are the usual ones of the family, not measured" + (
        f"; it may be {others}" if others else ""
    )


def _by_distance(name: str, family: Family, trials: Sequence[FeedTrial]) -> Proposal:
    """The family's first feed, unless another is clearly closer to the training statistics."""
    best = min(trials, key=_far)
    own = min((t for t in trials if t.feed in family.feeds), key=_far)
    is_open = name in OPEN_FAMILIES
    is_clear = _far(best) < CLEARLY_CLOSER * _far(own)
    chosen = best if is_clear and is_open else own
    words = (
        f"the first BatchNormalization is {_far(chosen):.2f} from its training statistics with"
        f" ({chosen.feed.words})"
    )
    runner = min((t for t in trials if not _is_alike(t, chosen)), key=_far, default=chosen)
    words += f", {_far(runner):.2f} with ({runner.feed.words})" if runner is not chosen else ""
    doubts = []
    if is_clear and not is_open:  # the pictures may be of another kind
        doubts.append(f"({best.feed.words}) is closer: are these pictures like those of training?")
    twin = next((t for t in trials if _is_twin(t, chosen)), None)
    if is_open and twin is not None and _far(chosen) > CLEARLY_CLOSER * _far(twin):
        doubts.append("red and blue could not be distinguished")
    return Proposal(
        name,
        family,
        chosen.feed,
        (family.evidence, words),
        (*family.doubts, *doubts),
        tuple(trials),
    )


def _by_sharpness(
    name: str, family: Family, trials: Sequence[FeedTrial], is_classifier: bool
) -> Proposal:
    """The first of the family's feeds within TIE_RATIO of the family's sharpest."""
    own = [t for t in trials if t.feed in family.feeds]
    if name in OPEN_FAMILIES:  # their color orders vary
        norms = [f.normalization for f in family.feeds]
        own = sorted(
            (t for t in trials if t.feed.normalization in norms),
            key=lambda t: (t.feed not in family.feeds, norms.index(t.feed.normalization)),
        )
    top = max(t.sharpness for t in own)
    chosen = next(t for t in own if t.sharpness * TIE_RATIO >= top)
    best = max(trials, key=lambda t: t.sharpness)
    doubts: list[str] = []
    if is_classifier and chosen.sharpness < CLEAR_RATIO * best.sharpness:
        doubts.append(f"the family usually takes ({chosen.feed.words})")
        chosen = best
    feed, words, notes = chosen.feed, [f"sharpness {chosen.sharpness:.2f}"], doubts
    if name in OPEN_FAMILIES and feed.colors != "gray":
        feed, colored, unclear = _colored(feed, trials)
        words, notes = colored or words, [*notes, *unclear]
    others = [t for t in trials if not _is_alike(t, chosen)]
    runner = max(others, key=lambda t: t.sharpness, default=chosen)
    if runner is not chosen:
        words.append(f"{_sharp(runner)}")
    if runner.sharpness * TIE_RATIO >= chosen.sharpness and len(family.feeds) > 1:
        notes.append(f"({runner.feed.words}) is about as sharp")
    return Proposal(
        name,
        family,
        feed,
        (family.evidence, "; ".join(words)),
        (*family.doubts, *notes),
        tuple(trials),
    )


def _colored(
    feed: PictureFeed, trials: Sequence[FeedTrial]
) -> tuple[PictureFeed, list[str], list[str]]:
    """The feed in the color order that the trials show, with words and doubts."""
    pair = {t.feed.colors: t for t in trials if t.feed.normalization == feed.normalization}
    if len(pair) < 2:
        return feed, [], ["the color order could not be measured"]
    own, other = pair[feed.colors], next(t for c, t in pair.items() if c != feed.colors)
    if max(own.sharpness, other.sharpness) < MIN_SHARPNESS:
        return feed, [], ["the color order could not be measured"]
    if other.sharpness > TIE_RATIO * own.sharpness:
        own, other = other, own
    words = [f"sharpness {own.sharpness:.2f}, {other.sharpness:.2f} with red and blue swapped"]
    if own.sharpness > TIE_RATIO * other.sharpness:
        return own.feed, words, []
    return feed, words, ["red and blue could not be distinguished"]


def _far(trial: FeedTrial) -> float:
    return float("inf") if trial.distance is None else trial.distance


def _sharp(trial: FeedTrial) -> str:
    return f"{trial.sharpness:.2f} of ({trial.feed.words})"


def _is_twin(trial: FeedTrial, other: FeedTrial) -> bool:
    """Whether only red and blue are swapped."""
    return trial.feed.normalization == other.feed.normalization and trial.feed != other.feed


def _is_alike(trial: FeedTrial, other: FeedTrial) -> bool:
    """Whether the two differ in color order only, or too little for the measures."""
    is_same = trial.feed.normalization == other.feed.normalization
    return is_same or (trial.sharpness, trial.distance) == (other.sharpness, other.distance)
