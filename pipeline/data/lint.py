"""What is wrong with a set of samples, told from a few facts about each.

A finding names its files. Memory is O(samples): of an array only its digest and its range is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np

from pipeline import digest

FEWEST = 8  # below this a percentile is an accident; the vendors ask for 20 to 100
SHOWN = 5  # files named in one finding

Kind = Literal["few", "blank", "duplicate", "range", "preprocessing"]


class Fact(NamedTuple):
    """One sample: `low` and `high` are its extremes, `size` its number of values, `dtype` what its
    file has them in."""

    name: str
    digest: str
    low: float
    high: float
    size: int
    dtype: str = ""


class Finding(NamedTuple):
    kind: Kind
    what: str


def fact(name: str, array: np.ndarray) -> Fact:
    """Of the values as the file has them, before the offset."""
    values = np.ascontiguousarray(array)
    return Fact(
        name,
        digest.of_bytes(values.tobytes()),
        float(values.min()),
        float(values.max()),
        values.size,
        values.dtype.name,
    )


def findings(
    facts: Sequence[Fact], allowed: tuple[float, float] | None = None, slack: float = 0.0
) -> Iterator[Finding]:
    """What to tell about the samples of one input, worst first; `allowed` is (lowest, highest),
    and a value may be `slack` beyond it.

    A single number per sample may be the same in all of them: a sample rate, say.
    """
    if allowed is not None:
        low, high = allowed
        outside = [
            f"{f.name} ({f.low:g}..{f.high:g})"
            for f in facts
            if f.low < low - slack or f.high > high + slack
        ]
        if outside:
            yield Finding("range", f"values outside {low:g}..{high:g}: {_listed(outside)}")
    images = [f for f in facts if f.size > 1]
    if blank := [f"{f.name} ({f.low:g})" for f in images if f.low == f.high]:
        yield Finding("blank", f"samples with one value all over: {_listed(blank)}")
    if copies := list(_copies(images)):
        yield Finding("duplicate", f"the same sample more than once: {_listed(copies)}")
    if len(facts) < FEWEST:
        yield Finding("few", f"{len(facts)} samples, at least {FEWEST} are needed")


def _copies(facts: Iterable[Fact]) -> Iterator[str]:
    """`copy = original` in the order of the files."""
    first: dict[str, str] = {}
    for fact in facts:
        original = first.setdefault(fact.digest, fact.name)
        if original != fact.name:
            yield f"{fact.name} = {original}"


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more
