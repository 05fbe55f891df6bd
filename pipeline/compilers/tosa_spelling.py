"""A .tflite model in the words that the TOSA converter translates right.

tosa-converter-for-tflite 2026.2 (and 2025.11), with iree-base-compiler 3.13, makes other numbers
of these. Each row of SPELLINGS replaces one by operators that compute the same codes in TensorFlow
Lite too, so the model keeps its meaning whichever of them a later converter mends.

QUANTIZE of floats       it becomes a cast to int8, which wraps where TensorFlow Lite saturates
                         -> MAXIMUM and MINIMUM in front, at the ends of the grid
CAST of codes to int32   it takes the zero point off, where TensorFlow Lite casts the code
                         -> QUANTIZE to int16 with zero point 0, CAST, ADD of the zero point
RESIZE_NEAREST_NEIGHBOR  TOSA rounds i n / m to the nearest, TensorFlow Lite down (tensorflow#62386)
                         -> TILE where each input is read k times, else a GATHER
STRIDED_SLICE backwards  one element, or no shape, along the axis
                         -> REVERSE_V2, and a STRIDED_SLICE forwards
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from pipeline.compilers.draft import KINDS
from pipeline.compilers.flatfile import NUMBERS, Fields, FlatModel, Operator, Tensor
from pipeline.compilers.resizes import READ


class _Sheet:
    """The tensors of a model, to which a spelling adds; operators are made, not kept."""

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        self.tensors = list(tensors)

    def like(self, index: int, called: str, shape: Sequence[int] | None = None) -> int:
        """A tensor of the same type and grid, perhaps of another shape."""
        tensor = self.tensors[index]
        return self.add(
            replace(tensor, name=f"{tensor.name}_{called}", shape=tuple(shape or tensor.shape))
        )

    def constant(self, values: np.ndarray) -> int:
        name = f"constant_{len(self.tensors)}"
        return self.add(Tensor(name, values.shape, str(values.dtype), values))

    def numbers(self, values: Sequence[int]) -> int:
        return self.constant(np.array(values, np.int32))

    def add(self, tensor: Tensor) -> int:
        self.tensors.append(tensor)
        return len(self.tensors) - 1


def _operator(kind: str, inputs: Sequence[int], output: int, options: Fields = {}) -> Operator:  # noqa: B006
    version, union = KINDS[kind]
    return Operator(kind, tuple(inputs), (output,), version, union, options)


def _quantize(sheet: _Sheet, drawn: Operator) -> Iterator[Operator]:
    (read,), (made,) = drawn.inputs, drawn.outputs
    grid = sheet.tensors[made]
    if sheet.tensors[read].dtype != "float32":
        yield drawn
        return
    types, (scale,) = np.iinfo(grid.dtype), grid.scale
    for kind, end in (("MAXIMUM", types.min), ("MINIMUM", types.max)):
        bound = sheet.constant(np.full((1,), (end - grid.zero_point) * np.float32(scale)))
        held = sheet.like(read, f"{kind.lower()}_{made}")
        yield _operator(kind, [read, bound], held)
        read = held
    yield replace(drawn, inputs=(read,))


def _cast(sheet: _Sheet, drawn: Operator) -> Iterator[Operator]:
    (read,), (made,) = drawn.inputs, drawn.outputs
    codes, whole = sheet.tensors[read], sheet.tensors[made]
    if not codes.scale or not codes.zero_point or whole.dtype != "int32":
        yield drawn
        return
    zero_point = codes.zero_point
    wide = sheet.add(replace(codes, name=f"{codes.name}_{made}", dtype="int16", zero_point=0))
    apart = sheet.like(made, "apart")
    types: Fields = {0: ("b", NUMBERS["int16"]), 1: ("b", NUMBERS["int32"])}
    yield _operator("QUANTIZE", [read], wide)
    yield _operator("CAST", [wide], apart, types)
    yield _operator("ADD", [apart, sheet.numbers([zero_point])], made, {0: ("b", 0)})


def _nearest(sheet: _Sheet, drawn: Operator) -> Iterator[Operator]:
    (read, _), (made,) = drawn.inputs, drawn.outputs
    before, after = sheet.tensors[read].shape, sheet.tensors[made].shape
    flags = bool(drawn.options[0][1]), bool(drawn.options[1][1])
    places = {axis: READ[flags](before[axis], after[axis]) for axis in (1, 2)}
    times = {axis: _times(places[axis], before[axis]) for axis in (1, 2)}
    steps: list[Operator] = []
    if any(factor > 1 for factor in times.values()):
        steps += _tiled(sheet, read, times)
        read = steps[-1].outputs[0]
    for axis in (axis for axis in (1, 2) if not times[axis]):
        shape = list(sheet.tensors[read].shape)
        shape[axis] = after[axis]
        at, picked = sheet.numbers(places[axis]), sheet.like(read, f"at_{axis}", shape)
        steps.append(_operator("GATHER", [read, at], picked, {0: ("i", axis)}))
        read = picked
    if not steps:  # TensorFlow Lite makes the same tensor of it
        shape = sheet.tensors[made].shape
        steps.append(_operator("RESHAPE", [read, sheet.numbers(shape)], made))
    yield from steps[:-1]
    yield replace(steps[-1], outputs=(made,))


def _times(places: Sequence[int], size: int) -> int:
    """How often each input is read, one after the other; 0 where not all of them are alike."""
    times = len(places) // size
    return times if list(places) == [at // max(times, 1) for at in range(size * times)] else 0


def _tiled(sheet: _Sheet, read: int, times: Mapping[int, int]) -> list[Operator]:
    """Each row and column as often: an axis of 1 beside it is repeated."""
    samples, height, width, channels = sheet.tensors[read].shape
    down, right = (max(times[axis], 1) for axis in (1, 2))
    apart = (samples * height, 1, width, 1, channels)
    tiles = (1, down, 1, right, 1)
    spread = tuple(n * m for n, m in zip(apart, tiles, strict=True))
    whole = (samples, height * down, width * right, channels)
    made = [
        sheet.like(read, called, shape)
        for called, shape in (("apart", apart), ("tiled", spread), ("whole", whole))
    ]
    return [
        _operator("RESHAPE", [read, sheet.numbers(apart)], made[0]),
        _operator("TILE", [made[0], sheet.numbers(tiles)], made[1]),
        _operator("RESHAPE", [made[1], sheet.numbers(whole)], made[2]),
    ]


def _slice(sheet: _Sheet, drawn: Operator) -> Iterator[Operator]:
    read, *spans = drawn.inputs
    begin, end, by = (_values(sheet, index) for index in spans)
    backwards = [axis for axis, step in enumerate(by) if step < 0]
    if not backwards:
        yield drawn
        return
    shape, (made,) = sheet.tensors[read].shape, drawn.outputs
    mask = int(drawn.options[1][1])
    for axis in backwards:
        size = shape[axis]
        begin[axis] = size - 1 - min(begin[axis] % size if begin[axis] < 0 else begin[axis], size - 1)
        end[axis] = size if mask >> axis & 1 else size - 1 - end[axis]
        by[axis] = -by[axis]
        mask &= ~(1 << axis)
    turned = sheet.like(read, f"turned_{made}")
    yield _operator("REVERSE_V2", [read, sheet.numbers(backwards)], turned)
    given = [sheet.numbers(each) for each in (begin, end, by)]
    yield _operator("STRIDED_SLICE", [turned, *given], made, {**drawn.options, 1: ("i", mask)})


def _values(sheet: _Sheet, index: int) -> list[int]:
    values = sheet.tensors[index].values
    assert values is not None
    return [int(each) for each in values]


SPELLINGS: Mapping[str, Callable[[_Sheet, Operator], Iterator[Operator]]] = {
    "CAST": _cast,
    "QUANTIZE": _quantize,
    "RESIZE_NEAREST_NEIGHBOR": _nearest,
    "STRIDED_SLICE": _slice,
}


def for_tosa(model: FlatModel) -> FlatModel:
    """The same inputs, outputs and codes."""
    sheet = _Sheet(model.tensors)
    operators = [
        replace(step, node=drawn.node)
        for drawn in model.operators
        for step in (
            SPELLINGS[drawn.type](sheet, drawn) if drawn.type in SPELLINGS else [drawn]
        )
    ]
    return model._replace(tensors=sheet.tensors, operators=operators)
