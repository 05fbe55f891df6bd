"""Keys for model inputs: a name, a number such as `@0`, or `*` for all others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

EVERY = "*"
T = TypeVar("T")


def numbered(index: int) -> str:
    """The key of the input with this number, from 0."""
    return f"@{index}"


def entries(sections: Mapping[str, T], names: Iterable[str]) -> dict[str, str]:
    """The key of `sections` for each name; names without one are left out.

    `names` lists all inputs of the model, in order.
    """
    keys = {
        name: next((key for key in (name, numbered(index), EVERY) if key in sections), None)
        for index, name in enumerate(names)
    }
    return {name: key for name, key in keys.items() if key is not None}


def strangers(sections: Mapping[str, T], names: Iterable[str]) -> list[str]:
    """The keys of `sections` that match no name."""
    listed = list(names)
    allowed = {*listed, *(numbered(index) for index in range(len(listed))), EVERY}
    return [key for key in sections if key not in allowed]
