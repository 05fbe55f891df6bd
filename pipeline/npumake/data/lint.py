"""Findings about a set of samples, from a few facts about each (npumake.data.facts).

A finding names its files and figures. A sample is blank or a copy as a whole, over all its inputs:
a mask, a position or a cache repeats by nature, and one picture goes with many texts. Two faults
are found in one input alone: a blank picture, and a picture that is the same in every sample.

Wild samples: let m_1 <= ... <= m_n be the largest distances
of the samples from the middle of the set. All samples above the first wide gap are wild:
m_k+1 >= WILD_GAP * m_k, if m_k+1 is also WILD_RATIO times the median and at most a quarter of the
samples lies above. Sets that vary in loudness or have heavy tails lack such a gap.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np

from npumake.data.facts import SIDES, Fact, ValueRange

MIN_SAMPLES = 8  # fewer make a percentile meaningless; the vendors recommend 20 to 100
MAX_NAMES = 5  # files named in one finding
WILD_RATIO = 8.0
WILD_GAP = 4.0
MAX_WILD_SHARE = 0.25

# A picture; values that are counted, named or switched (ids, positions, masks); any other array.
Role = Literal["picture", "discrete", "data"]
Kind = Literal["few", "blank", "duplicate", "range", "preprocessing", "wild", "constant", "padding"]


class SampleFinding(NamedTuple):
    kind: Kind
    what: str


class LintedInput(NamedTuple):
    """One input, and the facts about it in each sample."""

    name: str
    role: Role
    facts: Sequence[Fact]

    @property
    def may_be_blank(self) -> bool:
        """Whether one value all over is a fault: not in a single number, such as a sample rate."""
        return self.role != "discrete" and any(fact.size > 1 for fact in self.facts)

    @property
    def is_mask(self) -> bool:
        """Whether all values are 0 and 1."""
        values = {value for fact in self.facts for value in (fact.low, fact.high)}
        return self.role == "discrete" and values <= {0, 1}

    @property
    def is_same(self) -> bool:
        """Whether every sample has the same values."""
        return len({fact.digest for fact in self.facts}) == 1


def input_findings(
    own: LintedInput,
    allowed: tuple[float, float] | None = None,
    slack: float = 0.0,
    is_alone: bool = True,
) -> Iterator[SampleFinding]:
    """The findings about one input's values, worst first; `is_alone` if the model has no other.

    `allowed` is (lowest, highest); values may exceed it by `slack`. Channels and margins are judged
    in pictures, and in the only input: those of a cache are unused positions.
    """
    if allowed is not None:
        low, high = allowed
        outside = [
            f"{f.name} ({f.low:g}..{f.high:g})"
            for f in own.facts
            if f.low < low - slack or f.high > high + slack
        ]
        if outside:
            yield SampleFinding("range", f"values outside {low:g}..{high:g}: {_listed(outside)}")
    arrays = [f for f in own.facts if f.size > 1]
    if own.role != "discrete" and (allowed is None or not np.isfinite(allowed).all()):
        yield from _wild(arrays)
    if own.role == "picture" or (own.role == "data" and is_alone):
        yield from _constant_channels(arrays)
        yield from _padding(arrays)
    if len(own.facts) < MIN_SAMPLES:
        count = f"{len(own.facts)} sample{'s' * (len(own.facts) != 1)}"
        yield SampleFinding("few", f"{count}, at least {MIN_SAMPLES} are needed")


def sample_findings(inputs: Sequence[LintedInput]) -> Iterator[tuple[LintedInput, SampleFinding]]:
    """The findings about whole samples, each with the input to allow it under, worst first.

    A blank sample has one value all over in every input that may be blank, and its discrete inputs
    are those of every other sample. Masks alone make no copy: there are few of them.
    """
    pictures = [own for own in inputs if own.role == "picture"]
    main = next(iter([*pictures, *(own for own in inputs if own.may_be_blank), *inputs]))
    whole = {*_blank_samples(inputs)}
    for own in [main, *(own for own in pictures if own is not main)]:
        is_picture = own.role == "picture"
        of_own = {n for n, f in enumerate(own.facts) if is_picture and _is_blank(f)}
        named = [own.facts[n] for n in sorted(whole | of_own if own is main else of_own - whole)]
        if named:
            listed = _listed([f"{fact.name} ({fact.low:g})" for fact in named])
            yield own, SampleFinding("blank", f"samples with one value all over: {listed}")
    copies = [] if all(own.is_mask for own in inputs) else list(_copies(inputs, main))
    if copies:
        what = f"the same sample more than once: {_listed(copies)}"
        yield main, SampleFinding("duplicate", what)
        return
    for own in pictures:
        if own.is_same and len(own.facts) > 1:
            yield own, SampleFinding("duplicate", f"the same picture in {_span(own.facts)}")


def _is_blank(fact: Fact) -> bool:
    return fact.size > 1 and fact.low == fact.high


def _blank_samples(inputs: Sequence[LintedInput]) -> Iterator[int]:
    """The indices of samples that are blank as a whole."""
    judged = [own for own in inputs if own.may_be_blank]
    if not judged or not all(own.is_same for own in inputs if own.role == "discrete"):
        return
    for index in range(len(judged[0].facts)):
        facts = [own.facts[index] for own in judged]
        if any(map(_is_blank, facts)) and all(fact.low == fact.high for fact in facts):
            yield index


def _copies(inputs: Sequence[LintedInput], main: LintedInput) -> Iterator[str]:
    """`copy = original` for each duplicate, in the order of the files; `main` has the names."""
    first: dict[tuple[str, ...], str] = {}
    for about, *facts in zip(main.facts, *(own.facts for own in inputs), strict=True):
        original = first.setdefault(tuple(fact.digest for fact in facts), about.name)
        if original != about.name and any(fact.size > 1 for fact in facts):
            yield f"{about.name} = {original}"


def _wild(facts: Sequence[Fact]) -> Iterator[SampleFinding]:
    """Samples far outside the range of the others, as a whole or in one channel."""
    if len(facts) < MIN_SAMPLES or not np.isfinite([(f.low, f.high) for f in facts]).all():
        return
    whole = [ValueRange(fact.low, fact.high) for fact in facts]
    named = {fact.name: text for fact, text in zip(facts, _outliers(whole), strict=True) if text}
    for index in range(min(len(fact.channels) for fact in facts)):
        ranges = [fact.channels[index] for fact in facts]
        for fact, text in zip(facts, _outliers(ranges), strict=True):
            if text:
                named.setdefault(fact.name, f"channel {index}: {text}")
    if named:
        middle = np.median([fact.low for fact in facts]), np.median([fact.high for fact in facts])
        listed = _listed([f"{name} ({text})" for name, text in named.items()])
        usual = f"most samples are within {middle[0]:g}..{middle[1]:g}"
        yield SampleFinding(
            "wild", f"samples far out of the range of the others: {listed}; {usual}"
        )


def _outliers(ranges: Sequence[ValueRange]) -> list[str]:
    """The range of each wild sample as text, empty for the others."""
    lows, highs = np.array(ranges, np.float64).T
    middle = np.median((lows + highs) / 2)
    reach = np.maximum(np.abs(lows - middle), np.abs(highs - middle))
    ordered = np.sort(reach)
    first = len(ordered) - int(MAX_WILD_SHARE * len(ordered))
    wide = ordered[first:] >= np.maximum(
        WILD_GAP * ordered[first - 1 : -1], WILD_RATIO * np.median(ordered)
    )
    if not wide.any() or not np.median(ordered):
        return [""] * len(ranges)
    limit = ordered[first + int(np.argmax(wide))]
    judged = zip(ranges, reach >= limit, strict=True)
    return [f"{low:g}..{high:g}" if is_wild else "" for (low, high), is_wild in judged]


def _constant_channels(facts: Sequence[Fact]) -> Iterator[SampleFinding]:
    """Channels with one constant value in all samples, if other channels vary."""
    if len(facts) < 2 or min(len(fact.channels) for fact in facts) < 2:
        return
    by_channel = list(zip(*(fact.channels for fact in facts), strict=True))
    dead = [
        f"channel {index} ({ranges[0].low:g})"
        for index, ranges in enumerate(by_channel)
        if len(set(ranges)) == 1 and ranges[0].is_constant
    ]
    if dead and len(dead) < len(by_channel):
        yield SampleFinding(
            "constant", f"channels with one value in {_span(facts)}: {_listed(dead)}"
        )


def _padding(facts: Sequence[Fact]) -> Iterator[SampleFinding]:
    """Equal constant margins in all samples."""
    if len(facts) < MIN_SAMPLES or not all(fact.margins for fact in facts):
        return
    sides = []
    for side, margins in zip(
        SIDES, zip(*(fact.margins for fact in facts), strict=True), strict=True
    ):
        lines, value = margins[0]
        if lines and len(set(margins)) == 1:
            of = "/".join(f"{number:g}" for number in dict.fromkeys(value))
            sides.append(f"{lines} {'line' if lines == 1 else 'lines'} of {of} at the {side}")
    if sides:
        yield SampleFinding("padding", f"the same padding in {_span(facts)}: {', '.join(sides)}")


def _span(facts: Sequence[Fact]) -> str:
    return f"all {len(facts)} samples ({facts[0].name} to {facts[-1].name})"


def _listed(names: Sequence[str]) -> str:
    suffix = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    return ", ".join(names[:MAX_NAMES]) + suffix
