"""Output shapes of kernels that move codes, and checks of their attributes and constants.

Every function raises MisfitError for an instruction that its kernel does not accept.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from npumake.engine.arithmetic_shapes import factor_of_each, input_shape
from npumake.engine.call import Call
from npumake.engine.checks import (
    MAX_ATTRIBUTE,
    MisfitError,
    Shape,
    axes,
    axis,
    bounded,
    listed,
    numbers,
    one_of,
    refuse,
    whole,
    wholes,
)

PADDED = ("constant", "edge", "reflect", "wrap")


def joined(call: Call) -> Shape:
    factor_of_each(call, len(call.inputs))
    first, *others = (grid.shape for grid in call.inputs)
    at = axis(call, len(first))
    for shape in others:
        around = len(shape) == len(first) and _without(shape, at) == _without(first, at)
        refuse(not around, f"{list(first)} and {list(shape)} do not join along axis {at}")
    return _with(first, at, sum(grid.shape[at] for grid in call.inputs))


def _without(shape: Shape, at: int) -> Shape:
    return shape[:at] + shape[at + 1 :]


def _with(shape: Shape, at: int, *sizes: int) -> Shape:
    return shape[:at] + sizes + shape[at + 1 :]


def reshaped(call: Call) -> Shape:
    out_shape = wholes(call, "shape", len(listed(call, "shape")), 1)
    before = input_shape(call)
    refuse(math.prod(out_shape) != math.prod(before), f"{list(before)} is not {list(out_shape)}")
    return out_shape


def transposed(call: Call) -> Shape:
    shape = input_shape(call)
    order = wholes(call, "perm", len(shape), 0, len(shape) - 1)
    refuse(len(set(order)) < len(order), f"`perm` names an axis twice: {list(order)}")
    return tuple(shape[at] for at in order)


def padded(call: Call) -> Shape:
    shape = input_shape(call)
    around = [_pair(pair) for pair in listed(call, "around")]
    refuse(len(around) != len(shape), f"`around` has {len(around)} axes, not {len(shape)}")
    one_of(call, "mode", PADDED)
    if "fill" in call.step.attributes:
        whole(call, "fill", -(1 << 31))
    return tuple(size + begin + end for size, (begin, end) in zip(shape, around, strict=True))


def gathered(call: Call) -> Shape:
    shape = input_shape(call)
    at = axis(call, len(shape))
    indices = bounded(call, "indices", -shape[at], shape[at] - 1)
    return _with(shape, at, *indices.shape)


def gathered_flat(call: Call) -> Shape:
    count = math.prod(input_shape(call))
    return bounded(call, "indices", -count, count - 1).shape


def sliced(call: Call) -> Shape:
    out_shape = list(input_shape(call))
    spans = [_span(span, input_shape(call)) for span in listed(call, "spans")]
    refuse(len({at for at, _ in spans}) < len(spans), "`spans` names an axis twice")
    for at, cut in spans:
        out_shape[at] = len(range(*cut.indices(out_shape[at])))
    return tuple(out_shape)


def tiled(call: Call) -> Shape:
    before, after = input_shape(call), call.output.shape
    fits = len(before) <= len(after) and all(
        size and not length % size
        for size, length in zip(reversed(before), reversed(after), strict=False)
    )
    refuse(not fits, f"{list(before)} does not repeat to {list(after)}")
    return after


def deep_to_spacious(call: Call) -> Shape:
    n, c, h, w = _picture(call)
    size = whole(call, "blocksize", 1, 1 << 15)
    one_of(call, "mode", ("DCR", "CRD"))
    refuse(bool(c % size**2), f"{c} channels are not blocks of {size}")
    return n, c // size**2, h * size, w * size


def spacious_to_deep(call: Call) -> Shape:
    n, c, h, w = _picture(call)
    size = whole(call, "blocksize", 1, 1 << 15)
    refuse(bool(h % size or w % size), f"{h}x{w} is not blocks of {size}")
    return n, c * size**2, h // size, w // size


def _picture(call: Call) -> tuple[int, int, int, int]:
    shape = input_shape(call)
    if len(shape) != 4:
        raise MisfitError(f"{list(shape)} has no four axes")
    return shape[0], shape[1], shape[2], shape[3]


def resized(
    roles: Sequence[str], weight_bits: int, max_rank: int, usual: tuple[int, ...] | None = None
) -> Callable[[Call], Shape]:
    """Each resized axis has one constant per role, of the output length. `usual` are the axes of a
    kernel without an `axes` attribute."""

    def shape(call: Call) -> Shape:
        rank = len(input_shape(call))
        changed = axes(call, rank) if usual is None else usual
        refuse(len(changed) > max_rank or max(changed, default=0) >= rank, "its axes do not exist")
        out_shape = list(input_shape(call))
        for at in changed:
            unit = 1 << weight_bits  # below 0 if TensorFlow Lite reads beyond the border
            limits = [
                (-unit, unit) if role == "weight" else (0, out_shape[at] - 1) for role in roles
            ]
            sizes = {
                bounded(call, f"{role}_{at}", *limit, rank=1).size
                for role, limit in zip(roles, limits, strict=True)
            }
            refuse(len(sizes) > 1, f"the taps of axis {at} differ in number")
            out_shape[at] = sizes.pop()
        return tuple(out_shape)

    return shape


def _pair(pair: object) -> tuple[int, int]:
    """Padding at the begin and the end of an axis."""
    begin, end = numbers(pair, "around", 2, 0, MAX_ATTRIBUTE)
    return begin, end


def _span(span: object, shape: Shape) -> tuple[int, slice]:
    """[axis, start, stop, step] → (axis, slice); stop is None if a negative step ends before
    index 0."""
    if not isinstance(span, list) or len(span) != 4:
        raise MisfitError(f"a span is {span!r}, not a list of 4")
    (at,) = numbers(span[:1], "spans", 1, 0, len(shape) - 1)
    (step,) = numbers(span[3:], "spans", 1, -MAX_ATTRIBUTE, MAX_ATTRIBUTE)
    refuse(step == 0, "a span has the step 0")
    ends = [end for end in span[1:3] if end is not None or step > 0]
    refuse(not ends or span[1] is None, "a span has no start")
    numbers(ends, "spans", len(ends), 0, shape[at])
    return at, slice(span[1], span[2], step)
