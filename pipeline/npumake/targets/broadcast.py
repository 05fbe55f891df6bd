"""The broadcast of operands, and the least number of axes for the work.

Along an axis of the result longer than 1, an operand is either as long, or has length 1 and is
repeated. Axes of length 1 are dropped, and neighbors along which the same operands are repeated
merge:

    (2,3,4,5,6) + (2,3,4,5,6) -> 1 axis        (2,3,4) + (2,1,4) -> 3        (2,3,4) + (1,1,4) -> 2

where `merged_rank` lets only those merge along which none is: 3 in the last case.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

Shape = tuple[int, ...]


def collapsed_rank(shapes: Sequence[Shape]) -> int:
    """The remaining axes; 0 if every operand is a scalar."""
    return len(list(groupby(_repeated(_aligned(shapes)))))


def merged_rank(shapes: Sequence[Shape]) -> int:
    """The same if a broadcast axis merges with none."""
    groups = groupby(_repeated(_aligned(shapes)))
    return sum(len(list(axes)) if any(repeated) else 1 for repeated, axes in groups)


def repeated_operands(shapes: Sequence[Shape]) -> int:
    """The number of operands that are repeated along some axis."""
    return sum(any(axes) for axes in zip(*_repeated(_aligned(shapes)), strict=True))


def repeats_first(shapes: Sequence[Shape]) -> bool:
    """Whether an operand is repeated along the first axis."""
    return len({dims[:1] for dims in _aligned(shapes)}) > 1


def form(shapes: Sequence[Shape]) -> str:
    """Of a matrix product, its axes in letters: `11MK x KN`, B for any length but 1."""
    left, right, *_ = shapes
    return f"{_letters(left, 'MK')} x {_letters(right, 'KN')}"


def _letters(dims: Shape, matrix: str) -> str:
    lead = "".join("1" if size == 1 else "B" for size in dims[:-2])
    return lead + (matrix if len(dims) > 1 else "K")


def pairing(shapes: Sequence[Shape]) -> str:
    """The shape of the smaller of two images relative to the larger: the `same` shape, as a single
    one is to itself, one number per `channel`, `one` number, or `other`."""
    if len(shapes) != 2:
        return "same" if len(shapes) == 1 else "other"
    small, large = sorted(_aligned(shapes), key=lambda dims: (sum(dims), dims))
    if small == large:
        return "same"
    if set(small) <= {1}:
        return "one"
    per_channel = tuple(size if axis == 1 else 1 for axis, size in enumerate(large))
    batch = (*large[:1], *per_channel[1:])
    return "channel" if small in (per_channel, batch) else "other"


def left_mixes(shapes: Sequence[Shape]) -> bool:
    """Whether a product's left operand is repeated along some of its outer axes, not all."""
    return len(set(_outer(shapes, 0))) > 1


def right_leads(shapes: Sequence[Shape]) -> bool:
    """Whether the outer axes along which the right operand is repeated come last."""
    repeated = _outer(shapes, 1)
    return repeated == sorted(repeated)


def _outer(shapes: Sequence[Shape], operand: int) -> list[bool]:
    outer = _aligned([dims[:-2] for dims in shapes])
    return [axes[operand] for axes in _repeated(outer)]


def _aligned(shapes: Sequence[Shape]) -> list[Shape]:
    rank = max(map(len, shapes), default=0)
    return [(1,) * (rank - len(dims)) + dims for dims in shapes]


def _repeated(aligned: Sequence[Shape]) -> list[tuple[bool, ...]]:
    """Per axis of the result longer than 1, which operands are repeated."""
    axes = zip(*aligned, strict=True)
    return [tuple(size == 1 for size in sizes) for sizes in axes if max(sizes) > 1]
