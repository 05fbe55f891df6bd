"""More kinds of faults for dumps: each as a wrong driver, compiler, kernel or camera makes it.

VALUES change one tensor's codes; NODES change an instruction, and the tensor and all behind it are
computed so; INPUTS change the picture, with or without the input in the dump; BOARDS change every
tensor. Each names the kinds of causes that are right.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from dump_boards import Arrays, Board, in_file, tensors_of

from npumake.bundle.program import Instruction, Program, Tensor
from npumake.debug.dumps.conventions import entry
from npumake.engine.reference import ReferenceSession

Codes = np.ndarray
Draw = np.random.Generator


class ValueFault(NamedTuple):
    """`change` maps codes in our shape; `images` need height and width."""

    change: Callable[[Codes, Tensor, Draw], Codes]
    causes: tuple[str, ...]
    images: bool = False


class NodeFault(NamedTuple):
    ops: tuple[str, ...]
    change: Callable[[Instruction, Program, Draw], Instruction | Program | None]
    causes: tuple[str, ...]


class InputFault(NamedTuple):
    change: Callable[[np.ndarray, Draw], np.ndarray]
    causes: tuple[str, ...]


def _fill(x: Codes, grid: Tensor) -> Codes:
    return np.full_like(x, np.clip(grid.zero_point, np.iinfo(x.dtype).min, np.iinfo(x.dtype).max))


def _shift(x: Codes, grid: Tensor, rng: Draw) -> Codes:
    dy, dx = (int(v) for v in rng.integers(-4, 5, 2))
    dy, dx = (dy, dx) if dy or dx else (0, 3)
    out, (h, w) = _fill(x, grid), x.shape[2:]
    if abs(dy) >= h // 2 or abs(dx) >= w // 2:
        dy, dx = 1, 0
    out[:, :, max(dy, 0) : h + min(dy, 0), max(dx, 0) : w + min(dx, 0)] = x[
        :, :, max(-dy, 0) : h + min(-dy, 0), max(-dx, 0) : w + min(-dx, 0)
    ]
    return out


def _roll(x: Codes, grid: Tensor, rng: Draw) -> Codes:
    axis = int(rng.integers(2, 4))
    return np.roll(x, int(rng.integers(1, max(x.shape[axis] // 2, 2))), axis)


def _zoom_in(x: Codes, grid: Tensor, rng: Draw) -> Codes:
    h, w = x.shape[2:]
    top, left = (h // 4, w // 4) if rng.random() < 0.5 else (0, 0)
    rows, columns = top + np.arange(h) // 2, left + np.arange(w) // 2
    return x[:, :, rows][:, :, :, columns]


def _zoom_out(x: Codes, grid: Tensor, rng: Draw) -> Codes:
    out, half = _fill(x, grid), x[:, :, ::2, ::2]
    top, left = (x.shape[2] // 4, x.shape[3] // 4) if rng.random() < 0.5 else (0, 0)
    out[:, :, top : top + half.shape[2], left : left + half.shape[3]] = half
    return out


def _zoomed(x: Codes, grid: Tensor, rng: Draw) -> Codes:
    factor = float(rng.choice([0.7, 0.8, 1.25, 1.5]))
    places = [((np.arange(n) + 0.5) / factor + (n - n / factor) / 2 - 0.5) for n in x.shape[2:]]
    rows, columns = (
        np.clip(np.rint(p), 0, n - 1).astype(int) for p, n in zip(places, x.shape[2:], strict=True)
    )
    return x[:, :, rows][:, :, :, columns]


def _box(x: Codes, grid: Tensor, rng: Draw) -> Codes:
    """A part that was never written."""
    out, axis = x.copy(), int(rng.integers(1, x.ndim))
    n = x.shape[axis]
    begin, end = sorted(int(v) for v in rng.choice(n + 1, 2, replace=False))
    part = (slice(None),) * axis + (slice(begin, end),)
    out[part] = int(rng.choice([0, 85, grid.zero_point]))
    return out


def _tile(x: Codes, grid: Tensor, rng: Draw) -> Codes:
    """Rows written twice: the upper half again below."""
    out, h = x.copy(), x.shape[2] // 2
    out[:, :, h : 2 * h] = x[:, :, :h]
    return out


def _offset(x: Codes, grid: Tensor, rng: Draw) -> Codes:
    return np.roll(x.ravel(), int(rng.integers(1, max(x.size // 3, 2)))).reshape(x.shape)


def _bit(x: Codes, grid: Tensor, rng: Draw) -> Codes:
    mask = x.dtype.type(1 << int(rng.integers(2, 8 * x.dtype.itemsize - 1)))
    ways = (x & ~mask, x | mask, x ^ mask)
    return np.asarray(ways[int(rng.integers(3))], x.dtype)


def _wrapped(x: Codes, grid: Tensor, rng: Draw) -> Codes:
    """Codes twice as large that wrap around."""
    steps = (x.astype(np.int64) - grid.zero_point) * 2 + grid.zero_point
    return steps.astype(x.dtype)


def _words(x: Codes, grid: Tensor, rng: Draw) -> Codes:
    size = int(rng.choice([2, 4, 8]))
    flat = x.ravel().copy()
    whole = flat.size // size * size
    flat[:whole] = flat[:whole].reshape(-1, size)[:, ::-1].ravel()
    return flat.reshape(x.shape)


def _grouped(x: Codes, grid: Tensor, rng: Draw) -> Codes:
    """Channels interleaved by groups."""
    groups = next((g for g in (2, 4, 3) if x.shape[1] % g == 0 and x.shape[1] > g), 1)
    order = np.arange(x.shape[1]).reshape(groups, -1).T.ravel()
    return x[:, order]


def _negated(x: Codes, grid: Tensor, rng: Draw) -> Codes:
    return _codes(2 * grid.zero_point - x.astype(np.int64), grid)


def _relu(x: Codes, grid: Tensor, rng: Draw) -> Codes:
    return np.maximum(x, x.dtype.type(grid.zero_point))


def _absolute(x: Codes, grid: Tensor, rng: Draw) -> Codes:
    return _codes(np.abs(x.astype(np.int64) - grid.zero_point) + grid.zero_point, grid)


def _one_more(x: Codes, grid: Tensor, rng: Draw) -> Codes:
    """A zero point one away; zeros of a Relu stay where half of them round to."""
    step = int(rng.choice([-1, 1]))
    out = _codes(x.astype(np.int64) + step, grid)
    stay = (x == x.min()) & (rng.random(x.shape) < 0.5)
    return np.where(stay, x, out)


def _coarse(x: Codes, grid: Tensor, rng: Draw) -> Codes:
    """Truncated to fewer bits, about the zero point."""
    bits = int(rng.integers(1, 4)) + (8 if x.dtype.itemsize == 2 else 1)
    steps = x.astype(np.int64) - grid.zero_point
    return _codes((steps >> bits << bits) + grid.zero_point, grid)


def _rows_padded(x: Codes, grid: Tensor, rng: Draw) -> Codes:
    """Channels padded to 16 or 32 in memory, NHWC, dumped as if they were not."""
    last = x.transpose(0, 2, 3, 1)
    length = -(-x.shape[1] // 16) * 16
    length = length if length != x.shape[1] else length + 16
    wide = np.zeros((*last.shape[:3], length), x.dtype)
    wide[..., : x.shape[1]] = last
    return np.ascontiguousarray(wide.ravel()[: x.size].reshape(last.shape).transpose(0, 3, 1, 2))


def _channel_noise(x: Codes, grid: Tensor, rng: Draw) -> Codes:
    """Two channels of another picture."""
    out = x.copy()
    for channel in rng.choice(x.shape[1], 2, replace=False):
        out[:, channel] = rng.permutation(x[:, channel].ravel()).reshape(x[:, channel].shape)
    return out


def _factors(x: Codes, grid: Tensor, rng: Draw) -> Codes:
    each = rng.uniform(0.5, 1.5, (1, x.shape[1], *(1 for _ in x.shape[2:])))
    return _codes((x.astype(np.int64) - grid.zero_point) * each + grid.zero_point, grid)


def _small_scale(x: Codes, grid: Tensor, rng: Draw) -> Codes:
    factor = float(rng.choice([0.9, 0.93, 1.07, 1.1]))
    return _codes((x.astype(np.int64) - grid.zero_point) * factor + grid.zero_point, grid)


def _codes(values: np.ndarray, grid: Tensor) -> Codes:
    limits = np.iinfo(grid.dtype)
    return np.clip(np.rint(values), limits.min, limits.max).astype(grid.dtype)


ORIENTED, SHIFTS = ("orientation", "layout"), ("shift", "padding", "offset")
VALUES: Mapping[str, ValueFault] = {
    "mirrored": ValueFault(lambda x, g, r: np.flip(x, 3), ORIENTED, True),
    "upside down": ValueFault(lambda x, g, r: np.flip(x, 2), ORIENTED, True),
    "turned by 180": ValueFault(lambda x, g, r: np.flip(x, (2, 3)), ORIENTED, True),
    "turned by 90": ValueFault(
        lambda x, g, r: np.rot90(x, int(r.choice([1, 3])), (2, 3)), ORIENTED, True
    ),
    "shifted": ValueFault(_shift, SHIFTS, True),
    "rolled": ValueFault(_roll, SHIFTS, True),
    "zoomed in": ValueFault(_zoom_in, ("zoom",), True),
    "zoomed out": ValueFault(_zoom_out, ("zoom",), True),
    "zoomed": ValueFault(_zoomed, ("zoom",), True),
    "part unwritten": ValueFault(_box, ("uninitialized", "partial")),
    "tile twice": ValueFault(_tile, ("partial", "stale"), True),
    "offset": ValueFault(_offset, SHIFTS),
    "bit": ValueFault(_bit, ("bits", "width", "zero_point")),
    "wrapped": ValueFault(_wrapped, ("overflow", "scale")),
    "words": ValueFault(_words, ("byte_order",)),
    "grouped channels": ValueFault(_grouped, ("channel_order", "layout"), True),
    "negated": ValueFault(_negated, ("sign", "scale")),
    "relu added": ValueFault(_relu, ("activation", "clipped")),
    "absolute": ValueFault(_absolute, ("sign", "activation")),
    "zero point by one": ValueFault(_one_more, ("zero_point",)),
    "fewer bits": ValueFault(_coarse, ("width",)),
    "padded channels": ValueFault(_rows_padded, ("padding",), True),
    "some channels": ValueFault(_channel_noise, ("weights", "partial"), True),
    "factors of channels": ValueFault(_factors, ("scale",), True),
    "small scale": ValueFault(_small_scale, ("scale",)),
}


def _constants(step: Instruction, **changed: np.ndarray) -> Instruction:
    return replace(step, constants={**step.constants, **changed})


def _attributes(step: Instruction, **changed: object) -> Instruction:
    return replace(step, attributes={**step.attributes, **changed})


def _bias(change: Callable[[np.ndarray], np.ndarray]) -> Callable[..., Instruction | None]:
    def changed(step: Instruction, program: Program, rng: Draw) -> Instruction | None:
        bias = step.constants.get("bias")
        return None if bias is None else _constants(step, bias=np.asarray(change(bias), bias.dtype))

    return changed


def _weight(change: Callable[[np.ndarray], np.ndarray]) -> Callable[..., Instruction | None]:
    def changed(step: Instruction, program: Program, rng: Draw) -> Instruction | None:
        weight = step.constants.get("weight")
        if weight is None:
            return None
        other = np.ascontiguousarray(change(weight))
        return _constants(step, weight=other) if other.shape == weight.shape else None

    return changed


def _per_tensor(step: Instruction, program: Program, rng: Draw) -> Instruction | None:
    mantissa, shift = step.constants["mantissa"], step.constants["shift"]
    if mantissa.ndim != 1 or len(mantissa) < 2:
        return None
    at = int(np.argmax(mantissa.astype(np.float64) / 2.0 ** shift.astype(np.float64)))
    at = at if rng.random() < 0.5 else 0
    return _constants(
        step, mantissa=np.full_like(mantissa, mantissa[at]), shift=np.full_like(shift, shift[at])
    )


def _input_grid(step: Instruction, program: Program, rng: Draw) -> Program | None:
    """The node takes its input's zero point for 0."""
    name, grid = step.inputs[0], program.tensors[step.inputs[0]]
    if not grid.zero_point:
        return None
    return replace(program, tensors={**program.tensors, name: replace(grid, zero_point=0)})


def _pad_zero(step: Instruction, program: Program, rng: Draw) -> Program | None:
    """Pads with code 0, not with the zero point."""
    name, pads = step.inputs[0], step.attributes["pads"]
    grid, half = program.tensors[name], len(pads) // 2
    if not grid.zero_point or not any(pads):
        return None
    around = [[0, 0], [0, 0], *([pads[i], pads[half + i]] for i in range(half))]
    limits = np.iinfo(grid.dtype)
    pad = Instruction(
        "pad",
        f"{step.name}_pad",
        (name,),
        (f"{name}_padded",),
        {"mantissa": np.array(1 << 30), "shift": np.array(30)},
        {"around": around, "mode": "constant", "fill": 0, "rounding": "half_even"}
        | {"low": int(limits.min), "high": int(limits.max)},
    )
    shape = tuple(n + sum(ends) for n, ends in zip(grid.shape, around, strict=True))
    other = replace(_attributes(step, pads=[0] * len(pads)), inputs=pad.outputs)
    steps = [s for one in program.instructions for s in ((pad, other) if one is step else (one,))]
    tensors = {**program.tensors, pad.outputs[0]: replace(grid, shape=shape)}
    return replace(program, instructions=tuple(steps), tensors=tensors)


def _pads_moved(step: Instruction, program: Program, rng: Draw) -> Instruction | None:
    pads = list(step.attributes["pads"])
    half = len(pads) // 2
    if not any(pads):
        return None
    if pads[:half] != pads[half:]:
        return _attributes(step, pads=[*pads[half:], *pads[:half]])
    return _attributes(step, pads=[*(p - 1 for p in pads[:half]), *(p + 1 for p in pads[half:])])


def _no_clamp(step: Instruction, program: Program, rng: Draw) -> Instruction | None:
    limits = np.iinfo(program.tensors[step.outputs[0]].dtype)
    if (step.attributes["low"], step.attributes["high"]) == (limits.min, limits.max):
        return None
    return _attributes(step, low=int(limits.min), high=int(limits.max))


def _lower_clamp(step: Instruction, program: Program, rng: Draw) -> Instruction:
    low, high = step.attributes["low"], step.attributes["high"]
    return _attributes(step, high=int(low + (high - low) * 0.3))


def _one_operand(step: Instruction, program: Program, rng: Draw) -> Instruction:
    mantissa = step.constants["mantissa"].copy()
    mantissa[int(rng.integers(2))] = 0
    return _constants(step, mantissa=mantissa)


def _operands_swapped(step: Instruction, program: Program, rng: Draw) -> Instruction:
    order = [1, 0, *range(2, len(step.constants["mantissa"]))]
    shift = step.constants["shift"]
    return _constants(
        step,
        mantissa=step.constants["mantissa"][order],
        **({"shift": shift[order]} if shift.ndim else {}),
    )


def _concat_swapped(step: Instruction, program: Program, rng: Draw) -> Instruction | None:
    order = list(range(len(step.inputs)))[::-1]
    swapped = replace(step, inputs=tuple(step.inputs[i] for i in order))
    return _constants(
        swapped,
        **{k: v[order] for k, v in step.constants.items() if v.ndim and len(v) == len(order)},
    )


def _table(change: Callable[[np.ndarray], np.ndarray]) -> Callable[..., Instruction]:
    def changed(step: Instruction, program: Program, rng: Draw) -> Instruction:
        return _constants(step, table=np.asarray(change(step.constants["table"])))

    return changed


def _identity(table: np.ndarray) -> np.ndarray:
    limits = np.iinfo(table.dtype)
    return np.arange(limits.min, limits.max + 1).astype(table.dtype)[: len(table)]


CONV, LAYERS = ("conv",), ("conv", "matmul", "fully_connected_twice", "conv_transpose")
ADDS = ("add", "add_twice")
NODES: Mapping[str, NodeFault] = {
    "bias lost": NodeFault(LAYERS, _bias(np.zeros_like), ("bias",)),
    "bias doubled": NodeFault(LAYERS, _bias(lambda b: 2 * b), ("bias",)),
    "bias reversed": NodeFault(LAYERS, _bias(lambda b: b[::-1]), ("bias",)),
    "bias negated": NodeFault(LAYERS, _bias(np.negative), ("bias",)),
    "weights turned": NodeFault(CONV, _weight(lambda w: np.flip(w, (2, 3))), ("weights",)),
    "weights transposed": NodeFault(CONV, _weight(lambda w: w.swapaxes(2, 3)), ("weights",)),
    "weights reversed": NodeFault(CONV, _weight(lambda w: np.flip(w, 1)), ("weights",)),
    "weights of 4 bits": NodeFault(LAYERS, _weight(lambda w: w >> 4 << 4), ("weights",)),
    "weights unsigned": NodeFault(CONV, _weight(lambda w: w ^ np.int8(-128)), ("weights",)),
    "a filter lost": NodeFault(
        CONV,
        _weight(lambda w: np.concatenate([w[:-1], 0 * w[-1:]])),
        ("weights", "uninitialized", "bias"),
    ),
    "one factor": NodeFault(CONV, _per_tensor, ("scale",)),
    "input's zero point": NodeFault(LAYERS, _input_grid, ("zero_point",)),
    "padded with 0": NodeFault(CONV, _pad_zero, ("padding",)),
    "pads moved": NodeFault(CONV, _pads_moved, ("padding", "shift")),
    "activation lost": NodeFault((*CONV, *ADDS), _no_clamp, ("activation",)),
    "clamp too low": NodeFault((*CONV, *ADDS), _lower_clamp, ("clipped", "activation")),
    "one operand": NodeFault(ADDS, _one_operand, ("operands", "stale")),
    "operands' scales": NodeFault(ADDS, _operands_swapped, ("operands", "scale")),
    "subtracted": NodeFault(
        ("add_twice",), lambda s, p, r: _attributes(s, sign=-s.attributes["sign"]), ("operands",)
    ),
    "concat swapped": NodeFault(("concat",), _concat_swapped, ("operands", "channel_order")),
    "table by one": NodeFault(
        ("lookup",), _table(lambda t: np.roll(t, 1)), ("table", "zero_point")
    ),
    "table signed": NodeFault(("lookup",), _table(lambda t: np.roll(t, len(t) // 2)), ("table",)),
    "table lost": NodeFault(("lookup",), _table(_identity), ("activation", "table", "stale")),
}


def _axes(x: np.ndarray) -> tuple[int, int]:
    """Height and width."""
    return (1, 2) if x.ndim == 4 and x.shape[3] in (1, 3) else (2, 3)


def _black(x: np.ndarray) -> float:
    return float(np.min(x))


def _bright(factor: float) -> Callable[[np.ndarray, Draw], np.ndarray]:
    def changed(x: np.ndarray, rng: Draw) -> np.ndarray:
        return _black(x) + (x - _black(x)) * factor

    return changed


INPUTS: Mapping[str, InputFault] = {
    "picture by 90": InputFault(lambda x, r: np.rot90(x, 1, _axes(x)), ORIENTED),
    "picture by 180": InputFault(lambda x, r: np.flip(x, _axes(x)), ORIENTED),
    "picture by 270": InputFault(lambda x, r: np.rot90(x, 3, _axes(x)), ORIENTED),
    "picture mirrored": InputFault(lambda x, r: np.flip(x, _axes(x)[1]), ORIENTED),
    "picture upside down": InputFault(lambda x, r: np.flip(x, _axes(x)[0]), ORIENTED),
    "picture half bright": InputFault(_bright(0.5), ("brightness", "scale")),
    "picture half as wide": InputFault(_bright(0.25), ("brightness", "scale")),
    "picture inverted": InputFault(
        lambda x, r: np.max(x) + np.min(x) - x, ("brightness", "sign", "scale")
    ),
    "picture shifted": InputFault(lambda x, r: np.roll(x, (2, 1), _axes(x)), SHIFTS),
    "picture brighter": InputFault(
        lambda x, r: np.minimum(x + 0.1 * (np.max(x) - np.min(x)), np.max(x)),
        ("brightness", "zero_point"),
    ),
    "picture zoomed": InputFault(
        lambda x, r: np.repeat(np.repeat(x, 2, _axes(x)[0]), 2, _axes(x)[1])[
            tuple(slice(n) for n in x.shape)
        ],
        ("zoom",),
    ),
    "gray picture": InputFault(
        lambda x, r: np.broadcast_to(x.mean(axis=6 - sum(_axes(x)), keepdims=True), x.shape),
        ("channel_order", "gray"),
    ),
}
FINE = 8  # bits below a code
ROUNDED: Mapping[str, tuple[Callable[[np.ndarray, Tensor], np.ndarray], tuple[str, ...]]] = {
    "rounded down": (lambda x, grid: np.floor(x), ("rounding",)),
    "truncated": (lambda x, grid: np.trunc(x), ("rounding",)),
    "sums overflow": (
        lambda x, grid: (
            (np.rint(x * 3) + grid.zero_point).astype(grid.dtype).astype(np.float64)
            - grid.zero_point
        ),
        ("overflow", "scale"),
    ),
}
FINISHED = ("conv", "matmul", "mul", "rescale", "average_pool")
WHOLE: Mapping[str, tuple[str, ...]] = {
    "other sample": ("other_sample", "other_input", "stale"),
    "half of another sample": ("other_sample", "other_input", "stale", "partial"),
    "input's code by one": ("zero_point",),
    "int8 board": ("width",),
}
NEW = (*VALUES, *NODES, *ROUNDED, *INPUTS, *WHOLE)


class Planted(NamedTuple):
    tensor: str
    dump: Arrays
    causes: tuple[str, ...]


def planted_kind(at: Board, kind: str, rng: Draw) -> Planted | None:
    """A dump with a fault of the kind; None if the drawn place shows none."""
    if kind in VALUES:
        return _of_value(at, VALUES[kind], rng)
    if kind in NODES:
        return _of_node(at, NODES[kind], rng)
    if kind in ROUNDED:
        return _of_rounding(at, *ROUNDED[kind], rng)
    if kind in INPUTS:
        return _of_input(at, INPUTS[kind], rng)
    return _of_whole(at, kind, rng)


def _values(at: Board, index: int = 0) -> Arrays:
    return tensors_of(at.program, at.samples.read(index))


def _spots(at: Board, images: bool) -> list[str]:
    """Tensors with more than two values, behind the quantized input."""
    names = [n for step in at.program.instructions if step.op != "quantize" for n in step.outputs]
    grids = {n: at.program.tensors[n] for n in names}
    return [
        n
        for n, grid in grids.items()
        if grid.scale is not None
        and grid.dtype != "int32"
        and n in at.dump
        and (
            len(grid.shape) == 4 and min(grid.shape[1:]) > 3 if images else np.prod(grid.shape) > 8
        )
    ]


def _of_value(at: Board, fault: ValueFault, rng: Draw) -> Planted | None:
    spots = _spots(at, fault.images)
    if not spots or (fault is VALUES["padded channels"] and not at.is_last):
        return None
    name, ours = str(rng.choice(spots)), _values(at)
    right, grid = ours[name], at.program.tensors[name]
    wrong = np.ascontiguousarray(fault.change(right, grid, rng))
    if wrong.shape != right.shape or not _shows(wrong, right):
        return None
    values = {**ours, name: wrong}
    if rng.random() < 0.5:
        values = _continued(at.program, values, name)
    return Planted(name, _files(at, values), fault.causes)


def _of_node(at: Board, fault: NodeFault, rng: Draw) -> Planted | None:
    steps = [s for s in at.program.instructions if s.op in fault.ops and s.outputs[0] in at.dump]
    if not steps:
        return None
    step = steps[int(rng.integers(len(steps)))]
    other = fault.change(step, at.program, rng)
    if other is None:
        return None
    if isinstance(other, Program):
        return _of_program(at, step, other, fault.causes)
    instructions = tuple(other if one is step else one for one in at.program.instructions)
    return _of_program(at, step, replace(at.program, instructions=instructions), fault.causes)


def _of_program(
    at: Board, step: Instruction, other: Program, causes: tuple[str, ...]
) -> Planted | None:
    name, right = step.outputs[0], _values(at)
    if other.tensors[step.inputs[0]] != at.program.tensors[step.inputs[0]]:
        session = ReferenceSession(other)  # only this node reads the grid so
        wrong = np.asarray(next(iter(session.execute(step, [right[n] for n in step.inputs]))))
        values = _continued(at.program, {**right, name: wrong}, name)
    else:
        values = tensors_of(other, at.samples.read(0))
    if not _shows(values[name], right[name]):
        return None
    return Planted(name, _files(at, values), causes)


def _of_rounding(
    at: Board, rule: Callable[[np.ndarray, Tensor], np.ndarray], causes: tuple[str, ...], rng: Draw
) -> Planted | None:
    """A node whose results are rounded or limited otherwise, from sums with FINE more bits."""
    steps = [s for s in at.program.instructions if s.op in FINISHED and "shift" in s.constants]
    steps = [s for s in steps if s.outputs[0] in at.dump]
    if not steps:
        return None
    step, right = steps[int(rng.integers(len(steps)))], _values(at)
    name = step.outputs[0]
    grid = at.program.tensors[name]
    big = np.iinfo(np.int32)
    fine = _constants(step, shift=step.constants["shift"] - FINE)
    fine = _attributes(fine, low=int(big.min), high=int(big.max))
    tensors = {**at.program.tensors, name: replace(grid, dtype="int32", zero_point=0)}
    other = replace(
        at.program,
        tensors=tensors,
        instructions=(fine,),
        inputs=step.inputs,
        outputs=(name,),
    )
    (codes,) = ReferenceSession(other).execute(fine, [right[n] for n in step.inputs])
    whole = rule(np.asarray(codes, np.float64) / (1 << FINE), grid) + grid.zero_point
    wrong = np.clip(whole, step.attributes["low"], step.attributes["high"]).astype(grid.dtype)
    if not _shows(wrong, right[name]):
        return None
    values = _continued(at.program, {**right, name: wrong}, name)
    return Planted(name, _files(at, values), causes)


def _of_input(at: Board, fault: InputFault, rng: Draw) -> Planted | None:
    fed = dict(at.samples.read(0))
    (name,) = fed
    x = fed[name]
    if x.ndim != 4 or min(x.shape[a] for a in _axes(x)) < 8:
        return None
    wrong = fault.change(x.astype(np.float64), rng)
    if wrong.shape != x.shape or np.allclose(wrong, x):
        return None
    whole = np.rint(wrong) if x.dtype.kind in "iu" else wrong
    values = tensors_of(at.program, {name: np.ascontiguousarray(whole).astype(x.dtype)})
    dump = _files(at, values)
    entry = _entry(at)
    if rng.random() < 0.5:  # the board wrote no input
        dump = {n: v for n, v in dump.items() if n not in entry}
    first = next((n for n in _in_order(at) if n in dump), None)
    return None if first is None else Planted(first, dump, fault.causes)


def _of_whole(at: Board, kind: str, rng: Draw) -> Planted | None:
    causes = WHOLE[kind]
    if kind == "int8 board":
        return None if at.narrow is None else Planted(_first_of(at), dict(at.narrow), causes)
    values = _values(at)
    if kind == "input's code by one":
        name = next((n for n in _entry(at) if n in at.dump and n not in at.program.inputs), None)
        if name is None:
            return None
        wrong = _codes(values[name].astype(np.int64) + 1, at.program.tensors[name])
        return Planted(
            name, _files(at, _continued(at.program, {**values, name: wrong}, name)), causes
        )
    name = str(rng.choice(_spots(at, False)))
    other = _values(at, int(rng.integers(1, len(at.samples))))[name]
    if kind == "half of another sample":
        half = other.size // 2
        flat = values[name].copy().ravel()
        flat[half:] = other.ravel()[half:]
        other = flat.reshape(other.shape)
    if not _shows(other, values[name]):
        return None
    return Planted(name, _files(at, {**values, name: other}), causes)


def _first_of(at: Board) -> str:
    narrow = at.narrow or {}
    return next(
        n for n in _in_order(at) if n in narrow and not np.array_equal(narrow[n], at.dump[n])
    )


def _in_order(at: Board) -> list[str]:
    steps = at.program.instructions
    return [*at.program.inputs, *(n for step in steps for n in step.outputs)]


def _entry(at: Board) -> list[str]:
    """The inputs and their quantized tensors."""
    steps = entry(at.program)
    return [*at.program.inputs, *(n for step in steps for n in step.outputs)]


def _files(at: Board, values: Arrays) -> Arrays:
    return {n: in_file(values[n], at.is_last) for n in at.dump}


def _continued(program: Program, values: Arrays, name: str) -> Arrays:
    """The tensors that the program computes behind this one."""
    session, found, changed = ReferenceSession(program), dict(values), {name}
    for step in program.instructions:
        if changed & set(step.inputs) and name not in step.outputs:
            results = session.execute(step, [found[n] for n in step.inputs])
            found |= {n: np.asarray(x) for n, x in zip(step.outputs, results, strict=True)}
            changed |= set(step.outputs)
    return found


def _shows(wrong: Codes, right: Codes) -> bool:
    """Whether a fault changes more than a rounding would."""
    apart = wrong.astype(np.float64) - right
    off, free = np.abs(apart) > 0, right != right.min()
    is_one_way = bool((apart[off] > 0).all() or (apart[off] < 0).all())
    one = is_one_way and off[free].mean() >= 0.9 and off.sum() >= 16 if free.any() else False
    return bool((np.abs(apart) > 1).mean() >= 0.02 or off.mean() >= 0.3 or one)


RULES = ("half_even", "half_up", "half_away", "twice")
GOOD = ("exact", "thinned", "real", *(f"{rule}" for rule in RULES), "jitter", "much jitter")


def good_dump(at: Board, way: str, rng: Draw) -> Arrays:
    """A right dump as boards write it: of some tensors, in real values, rounded by another rule, or
    with some codes of every layer one away, each layer computed from the one before."""
    if way in RULES:
        steps = tuple(
            _attributes(s, rounding=way) if "shift" in s.constants and s.op == "conv" else s
            for s in at.program.instructions
        )
        return _files(at, tensors_of(replace(at.program, instructions=steps), at.samples.read(0)))
    if "jitter" in way:
        return _files(at, _jittered(at, 0.12 if way == "much jitter" else 0.03, rng))
    files = _files(at, _values(at))
    if way == "real":
        grids = at.program.tensors
        return {
            n: x
            if grids[n].scale is None
            else (x.astype(np.float32) - grids[n].zero_point) * np.float32(grids[n].scale)
            for n, x in files.items()
        }
    return (
        files if way == "exact" else {n: x for n, x in files.items() if rng.random() < 0.4} or files
    )


def _jittered(at: Board, share: float, rng: Draw) -> Arrays:
    session, values = ReferenceSession(at.program), dict(at.samples.read(0))
    for step in at.program.instructions:
        results = session.execute(step, [values[n] for n in step.inputs])
        for name, x in zip(step.outputs, results, strict=True):
            values[name] = np.asarray(x)
            if step.op in ("conv", "matmul", "add", "add_twice", "mul", "fully_connected_twice"):
                off = rng.choice([-1, 0, 1], x.shape, p=[share / 2, 1 - share, share / 2])
                low, high = step.attributes["low"], step.attributes["high"]
                values[name] = np.clip(x.astype(np.int64) + off, low, high).astype(x.dtype)
    return values
