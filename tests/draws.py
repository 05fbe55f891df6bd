"""Samples of a heavy sweep, for CI: every kind is there, and each change of the code draws others.

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
from hypothesis import settings

from workspaces import REPO

S = TypeVar("S")
EVERY = bool(os.environ.get("NPUMAKE_EVERY"))
LEAST = 20  # examples of a property
T = TypeVar("T")


def drawn(cases: Sequence[T], count: int) -> list[T]:
    """So many of the cases, in their order."""
    if EVERY:
        return list(cases)
    rng = np.random.default_rng(_code_seed())
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
