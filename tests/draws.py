"""What a run of everything takes, for CI: every kind is there, and each change of the code draws
others.

`of_a_whole_run` decides which slow tests run. The rest are samples within a test, of a heavy sweep.
By NPUMAKE_EVERY=1 all of it runs. `workspaces.few` names what CI takes; here nobody chooses.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import product
from typing import Any, TypeVar

import numpy as np
import pytest
from hypothesis import settings

from workspaces import REPO

S = TypeVar("S")
EVERY = bool(os.environ.get("NPUMAKE_EVERY"))
LEAST = 20  # examples of a property
SLOW_CASES = 9  # of a slow test, at most
SLOW_STEP = 5  # one of so many slow tests runs
T = TypeVar("T")


def of_a_whole_run(items: Sequence[pytest.Item], seed: int | None = None) -> list[pytest.Item]:
    """All that is quick, and of slow tests one of SLOW_STEP.

    Of a test with more cases than SLOW_CASES, or than its mark says, only so many count. The tests
    and cases that count stand in the order of the files, and steps go through them from a place
    that the code decides. So as many as SLOW_STEP in a row have one that runs.
    """
    seed = _code_seed() if seed is None else seed
    slow: dict[str, list[pytest.Item]] = {}
    most: dict[str, int] = {}
    for item in items:
        if mark := item.get_closest_marker("slow"):
            name = item.nodeid.partition("[")[0]
            slow.setdefault(name, []).append(item)
            most[name] = mark.kwargs.get("cases", SLOW_CASES)
    counted = [case for name, cases in slow.items() for case in drawn(cases, most[name], seed)]
    others = {*items}.difference(*slow.values())
    return [*others, *(counted if EVERY else counted[seed % SLOW_STEP :: SLOW_STEP])]


def drawn(cases: Sequence[T], count: int, seed: int | None = None) -> list[T]:
    """At most so many of the cases, in their order. `seed` is by default that of the code."""
    if EVERY or count >= len(cases):
        return list(cases)
    rng = np.random.default_rng(_code_seed() if seed is None else seed)
    return [cases[at] for at in sorted(rng.choice(len(cases), count, replace=False))]


def drawn_pairs(firsts: Iterable[T], seconds: Sequence[S], count: int = 1) -> list[tuple[T, S]]:
    """Each of `firsts` with so many of `seconds`, in turn, so that each of these is met too."""
    if EVERY:
        return list(product(firsts, seconds))
    start = _code_seed()
    return [
        (first, seconds[(start + number + step) % len(seconds)])
        for number, first in enumerate(firsts)
        for step in range(count)
    ]


def examples(count: int) -> settings:
    """Of a property: so many by NPUMAKE_EVERY=1, in CI a quarter. Hypothesis draws others each
    time."""
    return settings(max_examples=count if EVERY else max(LEAST, count // 4))


def label(case: str | Iterable[Any]) -> str:
    """The id of a case of names, or of tuples of them."""
    return case if isinstance(case, str) else ": ".join(map(label, case))


@cache
def _code_seed() -> int:
    """Another number after each change of the code."""
    code = hashlib.sha256()
    for file in sorted(REPO.glob("pipeline/npumake/**/*.py")):
        code.update(file.read_bytes())
    return int(code.hexdigest()[:16], 16)
