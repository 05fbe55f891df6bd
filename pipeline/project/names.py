"""Sections by name of a model input, in which `*` stands for every input that is not named."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

EVERY = "*"
T = TypeVar("T")


def entries(given: Mapping[str, T], names: Iterable[str]) -> dict[str, str]:
    """By name, the key of `given` that speaks of it; names that none speaks of are left out."""
    keys = {name: name if name in given else EVERY for name in names}
    return {name: key for name, key in keys.items() if key in given}


def strangers(given: Mapping[str, T], names: Iterable[str]) -> list[str]:
    """The keys of `given` that name nothing in `names`."""
    known = {*names, EVERY}
    return [key for key in given if key not in known]
