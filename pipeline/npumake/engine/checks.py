"""Type and range checks of an instruction's attributes and constants, for untrusted programs.

Every function raises MisfitError for a value that the kernel does not accept.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TypeAlias

import numpy as np

from npumake.engine.call import Call
from npumake.graph.shapes import MAX_ELEMENTS

Shape: TypeAlias = tuple[int, ...]

MAX_ATTRIBUTE = 1 << 31  # no axis is longer


class MisfitError(Exception):
    """The reason why a kernel does not accept an instruction."""


def refuse(wrong: bool, why: str) -> None:
    if wrong:
        raise MisfitError(why)


def attribute(call: Call, name: str) -> object:
    refuse(name not in call.step.attributes, f"it has no attribute `{name}`")
    return call.attribute(name)


def whole(call: Call, name: str, low: int = 0, high: int = MAX_ATTRIBUTE) -> int:
    return _whole(attribute(call, name), name, low, high)


def _whole(value: object, name: str, low: int, high: int) -> int:
    if type(value) is not int or not low <= value <= high:
        raise MisfitError(f"`{name}` is {value!r}, not a whole number from {low} to {high}")
    return value


def wholes(
    call: Call, name: str, count: int, low: int = 0, high: int = MAX_ATTRIBUTE
) -> tuple[int, ...]:
    """A list attribute of `count` integers within [least, most]."""
    return numbers(attribute(call, name), name, count, low, high)


def numbers(value_list: object, name: str, count: int, low: int, high: int) -> tuple[int, ...]:
    if not isinstance(value_list, list) or len(value_list) != count:
        raise MisfitError(f"`{name}` is {value_list!r}, not a list of {count}")
    return tuple(_whole(value, name, low, high) for value in value_list)


def listed(call: Call, name: str) -> list[object]:
    value = attribute(call, name)
    if not isinstance(value, list):
        raise MisfitError(f"`{name}` is {value!r}, not a list")
    return value


def flag(call: Call, name: str) -> bool:
    value = attribute(call, name)
    if type(value) is not bool:
        raise MisfitError(f"`{name}` is {value!r}, not true or false")
    return value


def one_of(call: Call, name: str, choices: Iterable[str]) -> str:
    value, names = attribute(call, name), tuple(choices)
    if not isinstance(value, str) or value not in names:
        raise MisfitError(f"`{name}` is {value!r}, not one of {', '.join(names)}")
    return value


def axis(call: Call, rank: int) -> int:
    refuse(rank < 1, "it has an axis of a scalar")
    return whole(call, "axis", 0, rank - 1)


def axes(call: Call, rank: int) -> tuple[int, ...]:
    """The distinct axes in `axes`, each valid for a tensor of this rank."""
    count = len(listed(call, "axes"))
    refuse(count > rank, f"`axes` has {count} axes of {rank}")
    indices = wholes(call, "axes", count, 0, rank - 1)
    refuse(len(set(indices)) < count, f"`axes` names an axis twice: {list(indices)}")
    return indices


def constant(call: Call, role: str, kinds: str = "iu", rank: int | None = None) -> np.ndarray:
    """The non-empty constant `role` of one of these NumPy kinds; floats must be finite."""
    refuse(role not in call.step.constants, f"it has no constant `{role}`")
    values = call.constant(role)
    refuse(values.dtype.kind not in kinds, f"`{role}` holds {values.dtype}")
    refuse(values.size < 1, f"`{role}` is empty")
    refuse(rank is not None and values.ndim != rank, f"`{role}` has {values.ndim} axes, not {rank}")
    refuse(values.dtype.kind == "f" and not np.isfinite(values).all(), f"`{role}` is not finite")
    return values


def bounded(
    call: Call, role: str, minimum: int, maximum: int, rank: int | None = None
) -> np.ndarray:
    """An integer constant within [least, most], as int64."""
    values = constant(call, role, "i", rank)
    refuse(values.dtype != np.int64, f"`{role}` holds {values.dtype}")
    low, high = int(values.min()), int(values.max())
    refuse(
        low < minimum or high > maximum,
        f"`{role}` holds {low} to {high}, not {minimum} to {maximum}",
    )
    return values


def broadcast(*shapes: Sequence[int]) -> Shape:
    """The shape after NumPy broadcasting."""
    rank = max(map(len, shapes), default=0)
    columns = zip(*((1,) * (rank - len(shape)) + tuple(shape) for shape in shapes), strict=True)
    sizes = [set(column) - {1} for column in columns]
    refuse(any(len(size) > 1 for size in sizes), f"{_joined(shapes)} do not broadcast")
    return tuple(size.pop() if size else 1 for size in sizes)


def within(role: str, shape: Sequence[int], result: Shape) -> None:
    """Raises if a constant of this shape would enlarge the result by broadcasting."""
    if len(shape) > len(result) or broadcast(shape, result) != result:
        raise MisfitError(f"`{role}` of {list(shape)} does not fit a result of {list(result)}")


def refuse_unstorable(shape: Sequence[int], what: str) -> None:
    """Raises for an empty shape, and for one of more than MAX_ELEMENTS elements."""
    count = math.prod(shape)
    refuse(count < 1, f"{what} of {list(shape)} is empty")
    refuse(count > MAX_ELEMENTS, f"{what} of {list(shape)} has more than {MAX_ELEMENTS:,}")


def _joined(shapes: Iterable[Sequence[int]]) -> str:
    return " and ".join(str(list(shape)) for shape in shapes)
