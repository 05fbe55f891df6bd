"""Data movement: the codes move unchanged, and are requantized only if the grids differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from npumake.bundle.program import Instruction
from npumake.compilers.clamps import clamped, regrid
from npumake.compilers.tflite_builder import NHWC, Order, TFLiteBuilder, plain

MAX_PAD_AXES = 5  # axes
MIRRORED = {"reflect": 0, "edge": 1}  # "edge" only with a width of 1


def reshape(draft: TFLiteBuilder, step: Instruction) -> None:
    """If only axes of size 1 appear or disappear, the others keep their layout."""
    source, name = step.inputs[0], step.outputs[0]
    shape = draft.grid(name).shape
    order = _order_after(draft.grid(source).shape, draft.order(source), shape)
    if order is None:
        index, order = draft.read_flat(source), plain(len(shape))
    else:
        index = draft.read(source, draft.order(source))
    if draft.tensors[index].shape != tuple(shape[axis] for axis in order):
        output = draft.hidden(source, order, f"{name}_reshaped", shape)
        draft.reshape(index, output)
        index = output
    regrid(draft, step, index, order)


def _order_after(before: tuple[int, ...], order: Order, after: tuple[int, ...]) -> Order | None:
    """The axis order after a Reshape that only adds or removes axes of size 1; None for
    others."""
    long, longs = ([a for a, n in enumerate(shape) if n != 1] for shape in (before, after))
    if [before[axis] for axis in long] != [after[axis] for axis in longs]:
        return None
    lies = [longs[long.index(axis)] for axis in order if axis in long]
    if len(after) == 4 and [axis for axis in NHWC if axis in longs] == lies:
        return NHWC
    if lies == longs:
        return plain(len(after))
    return (*(axis for axis in plain(len(after)) if axis not in longs), *lies)


def transpose(draft: TFLiteBuilder, step: Instruction) -> None:
    """The same tensor with its axes renamed."""
    perm, order = step.attributes["perm"], draft.order(step.inputs[0])
    new_order = tuple(perm.index(axis) for axis in order)
    regrid(draft, step, draft.read(step.inputs[0], order), new_order)


def concat(draft: TFLiteBuilder, step: Instruction) -> None:
    name, axis = step.outputs[0], step.attributes["axis"]
    order = draft.order(step.inputs[0])
    grid, read = draft.grid(name), []
    for index, operand in enumerate(step.inputs):
        source, lies = draft.read(operand, order), draft.grid(operand)
        if (lies.scale, lies.zero_point) != (grid.scale, grid.zero_point):
            requantized = draft.hidden(name, order, f"{name}_{index}", lies.shape)
            draft.draw("QUANTIZE", [source], [requantized])
            source = requantized
        read.append(source)
    # LiteRT fuses no activation here, so the clamp is a separate operator.
    clamped(draft, step, "CONCATENATION", read, order, {0: ("i", order.index(axis))})


def pad(draft: TFLiteBuilder, step: Instruction) -> None:
    """Repeating modes become a MIRROR_PAD if it has the mode, else a GATHER along each axis. An
    edge of width 1 is SYMMETRIC, which more chips support."""
    order, mode = draft.order(step.inputs[0]), step.attributes["mode"]
    sizes = draft.grid(step.inputs[0]).shape
    if mode != "constant" and not _is_mirrored(mode, step.attributes["around"], sizes):
        _repeated(draft, step, order)
        return
    if mode == "constant" and len(order) > MAX_PAD_AXES:
        _framed(draft, step, order)
        return
    around = np.array([step.attributes["around"][axis] for axis in order], np.int32)
    inputs = [draft.read(step.inputs[0], order), draft.constant(f"{step.name}_pads", around)]
    output, grid = draft.make(step.outputs[0], order), draft.grid(step.outputs[0])
    fill = step.attributes.get("fill", grid.zero_point)
    if mode != "constant":
        draft.draw("MIRROR_PAD", inputs, [output], {0: ("b", MIRRORED[mode])})
    elif fill == grid.zero_point:
        draft.draw("PAD", inputs, [output])
    else:
        value = draft.constant(f"{step.name}_fill", np.full((), fill, grid.dtype), grid)
        draft.draw("PADV2", [*inputs, value], [output])


def _framed(draft: TFLiteBuilder, step: Instruction, order: Order) -> None:
    """Concatenates the constant along one axis after the other."""
    name, shape = step.outputs[0], list(draft.grid(step.inputs[0]).shape)
    index, grid = draft.read(step.inputs[0], order), draft.grid(name)
    fill = step.attributes.get("fill", grid.zero_point)
    for axis, sides in enumerate(step.attributes["around"]):
        if not any(sides):
            continue
        frame = [
            draft.constant(f"{name}_{axis}", np.full(block, fill, grid.dtype), grid)
            if block[order.index(axis)]
            else None
            for block in (
                tuple(size if dimension == axis else shape[dimension] for dimension in order)
                for size in sides
            )
        ]
        shape[axis] += sum(sides)
        parts = [part for part in (frame[0], index, frame[1]) if part is not None]
        index = draft.hidden(name, order, f"{name}_{axis}_framed", shape)
        draft.draw("CONCATENATION", parts, [index], {0: ("i", order.index(axis)), 1: ("b", 0)})
    draft.hold(name, order, index)


def _is_mirrored(mode: str, around: Sequence[Sequence[int]], sizes: Sequence[int]) -> bool:
    if mode == "edge":
        return bool(np.max(around) <= 1)
    return mode == "reflect" and all(max(p) < n for p, n in zip(around, sizes, strict=True))


def _repeated(draft: TFLiteBuilder, step: Instruction, order: Order) -> None:
    sizes, mode = draft.grid(step.inputs[0]).shape, step.attributes["mode"]
    places = {
        axis: np.pad(np.arange(size), sides, mode=mode)
        for axis, (size, sides) in enumerate(zip(sizes, step.attributes["around"], strict=True))
        if any(sides)
    }
    gather_along(draft, step, order, places)


def gather_along(
    draft: TFLiteBuilder, step: Instruction, order: Order, places: Mapping[int, np.ndarray]
) -> None:
    """The elements at these positions, along one axis after the other."""
    name, shape = step.outputs[0], list(draft.grid(step.inputs[0]).shape)
    index = draft.read(step.inputs[0], order)
    for axis, where in places.items():
        called = name if axis == list(places)[-1] else f"{name}_{axis}"
        at = draft.constant(f"{name}_at_{axis}", where.astype(np.int32))
        shape[axis] = len(where)
        output = draft.hidden(step.inputs[0], order, called, shape)
        draft.draw("GATHER", [index, at], [output], {0: ("i", order.index(axis))})
        index = output
    regrid(draft, step, index, order)


def gather(draft: TFLiteBuilder, step: Instruction) -> None:
    """Along one axis; scalar indices remove the axis."""
    axis, indices = step.attributes["axis"], step.constants["indices"].astype(np.int32)
    rank = len(draft.grid(step.inputs[0]).shape)
    size = draft.grid(step.inputs[0]).shape[axis]
    order = draft.order(step.inputs[0]) if indices.ndim == 1 else plain(rank)
    where = np.where(indices < 0, indices + size, indices).astype(np.int32)
    inputs = [draft.read(step.inputs[0], order), draft.constant(f"{step.name}_at", where)]
    out = order if indices.ndim == 1 else plain(rank + indices.ndim - 1)
    output = draft.make(step.outputs[0], out)
    draft.draw("GATHER", inputs, [output], {0: ("i", order.index(axis))})


def sliced(draft: TFLiteBuilder, step: Instruction) -> None:
    order, shape = draft.order(step.inputs[0]), draft.grid(step.inputs[0]).shape
    spans = {axis: (start, end, by) for axis, start, end, by in step.attributes["spans"]}
    ordered = [spans.get(axis, (0, shape[axis], 1)) for axis in order]
    ends = [0 if end is None else end for _, end, _ in ordered]
    columns = ([start for start, _, _ in ordered], ends, [by for _, _, by in ordered])
    mask = sum(1 << at for at, (_, end, _) in enumerate(ordered) if end is None)
    named = zip(("begin", "end", "strides"), columns, strict=True)
    parameters = [draft.constant(f"{step.name}_{n}", np.array(v, np.int32)) for n, v in named]
    output = draft.make(step.outputs[0], order)
    read = draft.read(step.inputs[0], order)
    draft.draw("STRIDED_SLICE", [read, *parameters], [output], {0: ("i", 0), 1: ("i", mask)})
