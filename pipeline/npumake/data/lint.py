"""Findings about a set of samples, from a few facts about each (npumake.data.facts).

A finding names its files and figures. Wild samples: let m_1 <= ... <= m_n be the largest distances
of the samples from the middle of the set. All samples above the first wide gap are wild:
m_k+1 >= WILD_GAP * m_k, if m_k+1 is also WILD_RATIO times the median and at most a quarter of the
samples lies above. Sets that vary in loudness or have heavy tails lack such a gap.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np

from npumake.data.facts import SIDES, Fact, ValueRange

MIN_SAMPLES = 8  # fewer make a percentile meaningless; the vendors recommend 20 to 100
MAX_NAMES = 5  # files named in one finding
WILD_RATIO = 8.0
WILD_GAP = 4.0
MAX_WILD_SHARE = 0.25

Kind = Literal["few", "blank", "duplicate", "range", "preprocessing", "wild", "constant", "padding"]


class SampleFinding(NamedTuple):
    kind: Kind
    what: str


def findings(
    facts: Sequence[Fact], allowed: tuple[float, float] | None = None, slack: float = 0.0
) -> Iterator[SampleFinding]:
    """The findings about one input's samples, worst first.

    `allowed` is (lowest, highest); values may exceed it by `slack`. Samples of a single number,
    such as a sample rate, may all be equal.
    """
    if allowed is not None:
        low, high = allowed
        outside = [
            f"{f.name} ({f.low:g}..{f.high:g})"
            for f in facts
            if f.low < low - slack or f.high > high + slack
        ]
        if outside:
            yield SampleFinding("range", f"values outside {low:g}..{high:g}: {_listed(outside)}")
    images = [f for f in facts if f.size > 1]
    if blank := [f"{f.name} ({f.low:g})" for f in images if f.low == f.high]:
        yield SampleFinding("blank", f"samples with one value all over: {_listed(blank)}")
    if copies := list(_copies(images)):
        yield SampleFinding("duplicate", f"the same sample more than once: {_listed(copies)}")
    if allowed is None or not np.isfinite(allowed).all():
        yield from _wild(images)
    yield from _constant_channels(images)
    yield from _padding(images)
    if len(facts) < MIN_SAMPLES:
        count = f"{len(facts)} sample{'s' * (len(facts) != 1)}"
        yield SampleFinding("few", f"{count}, at least {MIN_SAMPLES} are needed")


def _copies(facts: Iterable[Fact]) -> Iterator[str]:
    """`copy = original` for each duplicate, in the order of the files."""
    first: dict[str, str] = {}
    for fact in facts:
        original = first.setdefault(fact.digest, fact.name)
        if original != fact.name:
            yield f"{fact.name} = {original}"


def _wild(facts: Sequence[Fact]) -> Iterator[SampleFinding]:
    """Samples far outside the range of the others, as a whole or in one channel."""
    if len(facts) < MIN_SAMPLES:
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
