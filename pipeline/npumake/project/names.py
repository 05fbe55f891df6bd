"""Sections by name of a model input, or by its number as `@0`; `*` stands for all the others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

EVERY = "*"
T = TypeVar("T")


def numbered(index: int) -> str:
    """The key that speaks of the input of this number, counted from 0."""
    return f"@{index}"


def entries(sections: Mapping[str, T], names: Iterable[str]) -> dict[str, str]:
    """By name, the key of `given` that speaks of it; names that none speaks of are left out.

    `names` are all inputs of the model, in its order.
    """
    keys = {
        name: next((key for key in (name, numbered(index), EVERY) if key in sections), None)
        for index, name in enumerate(names)
    }
    return {name: key for name, key in keys.items() if key is not None}


def strangers(sections: Mapping[str, T], names: Iterable[str]) -> list[str]:
    """The keys of `given` that name nothing in `names`."""
    listed = list(names)
    allowed = {*listed, *(numbered(index) for index in range(len(listed))), EVERY}
    return [key for key in sections if key not in allowed]
