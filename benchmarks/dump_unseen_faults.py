"""Faults that the causes were not written for, as an engineer finds them on a new board.

They were drawn once before any of them was mended; dump_faults.py has the figures.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from dump_input_faults import InputFault, picture_axes
from dump_node_faults import ADDS, CONV, LAYERS, NodeFault, bias_fault, weight_fault
from dump_tensors import with_attributes, with_constants
from dump_value_faults import Codes, Draw, ValueFault, codes_of

from npumake.bundle.program import Instruction, Program, Tensor


def _pair(x: Codes, grid: Tensor, rng: Draw) -> Codes:
    """Two channels exchanged, in one group only."""
    order = np.arange(x.shape[1])
    at = int(rng.integers(x.shape[1] // 2)) * 2
    order[[at, at + 1]] = order[[at + 1, at]]
    return x[:, order]


def _interlaced(x: Codes, grid: Tensor, rng: Draw) -> Codes:
    """Odd rows hold the even ones before them."""
    return x[:, :, np.arange(x.shape[2]) // 2 * 2]


def _fields(x: Codes, grid: Tensor, rng: Draw) -> Codes:
    """Even rows first, then the odd ones."""
    rows = np.arange(x.shape[2])
    return x[:, :, np.concatenate([rows[::2], rows[1::2]])]


def _quarters(x: Codes, grid: Tensor, rng: Draw) -> Codes:
    """Two tiles exchanged."""
    out, h, w = x.copy(), x.shape[2] // 2, x.shape[3] // 2
    out[:, :, :h, :w], out[:, :, h : 2 * h, w : 2 * w] = (
        x[:, :, h : 2 * h, w : 2 * w],
        x[:, :, :h, :w],
    )
    return out


def _stuck_channel(x: Codes, grid: Tensor, rng: Draw) -> Codes:
    out = x.copy()
    out[:, int(rng.integers(x.shape[1]))] = int(rng.choice([0, grid.zero_point, 127]))
    return out


def _missing_block(x: Codes, grid: Tensor, rng: Draw) -> Codes:
    """Channels behind the last whole block of the vector unit."""
    out = x.copy()
    out[:, x.shape[1] - max(x.shape[1] // 4, 1) :] = 0
    return out


def _fewer_bits_saturate(x: Codes, grid: Tensor, rng: Draw) -> Codes:
    """12 bits of 16, or 6 of 8, that saturate."""
    reach = max(int(np.abs(x.astype(np.int64)).max()) // 4, 3)
    return codes_of(np.clip(x.astype(np.int64), -reach - 1, reach), grid)


def _affine(x: Codes, grid: Tensor, rng: Draw) -> Codes:
    """A batch normalization applied twice: each channel has a factor and an offset."""
    size = (1, x.shape[1], *(1 for _ in x.shape[2:]))
    factor, moved = rng.uniform(0.7, 1.3, size), rng.normal(0, 0.05, size) * np.ptp(x)
    return codes_of((x.astype(np.int64) - grid.zero_point) * factor + moved + grid.zero_point, grid)


def _unsigned(x: Codes, grid: Tensor, rng: Draw) -> Codes:
    """Negative codes became 0."""
    return np.maximum(x, 0)


def _square_root_bits(x: Codes, grid: Tensor, rng: Draw) -> Codes:
    """A companded tensor: a square root of the range, for a small memory."""
    steps = x.astype(np.float64) - grid.zero_point
    reach = float(np.abs(steps).max()) or 1.0
    return codes_of(np.sign(steps) * np.sqrt(np.abs(steps) * reach) + grid.zero_point, grid)


def _overlapping(x: Codes, grid: Tensor, rng: Draw) -> Codes:
    """The second half of the channels was written a few channels early."""
    out, half, by = x.copy(), x.shape[1] // 2, max(x.shape[1] // 8, 1)
    out[:, half - by : x.shape[1] - by] = x[:, half:]
    return out


def _swizzled(x: Codes, grid: Tensor, rng: Draw) -> Codes:
    """Tiles of 4 by 4 pixels one behind the other in memory."""
    n, c, h, w = x.shape
    if h % 4 or w % 4:
        return x
    tiles = x.reshape(n, c, h // 4, 4, w // 4, 4).swapaxes(3, 4)
    return np.ascontiguousarray(tiles).reshape(x.shape)


def _dead_border(x: Codes, grid: Tensor, rng: Draw) -> Codes:
    """The outermost pixels were not computed."""
    out = np.full_like(x, codes_of(np.array(grid.zero_point), grid))
    out[:, :, 1:-1, 1:-1] = x[:, :, 1:-1, 1:-1]
    return out


VALUE_FAULTS: Mapping[str, ValueFault] = {
    "pair of channels": ValueFault(_pair, ("channel_order",), True),
    "odd rows": ValueFault(_interlaced, ("partial", "zoom", "stale", "layout"), True),
    "fields": ValueFault(_fields, ("layout", "partial", "orientation"), True),
    "tiles exchanged": ValueFault(_quarters, ("partial", "stale", "layout"), True),
    "channel stuck": ValueFault(_stuck_channel, ("uninitialized", "partial", "weights"), True),
    "block missing": ValueFault(_missing_block, ("uninitialized", "partial"), True),
    "saturated bits": ValueFault(_fewer_bits_saturate, ("clipped", "width")),
    "normalized twice": ValueFault(_affine, ("scale", "bias"), True),
    "negative codes lost": ValueFault(_unsigned, ("clipped", "activation", "sign")),
    "companded": ValueFault(_square_root_bits, ("table", "activation", "curve")),
    "halves overlap": ValueFault(_overlapping, ("partial", "stale", "offset", "layout"), True),
    "tiles of four": ValueFault(_swizzled, ("layout",), True),
    "border lost": ValueFault(_dead_border, ("padding", "uninitialized", "partial"), True),
}


def _doubled(step: Instruction, program: Program, rng: Draw) -> Instruction:
    """One operand counts twice."""
    mantissa, shift = step.constants["mantissa"].copy(), step.constants["shift"].copy()
    at = int(rng.integers(2))
    if shift.ndim:
        shift[at] -= 1
        return with_constants(step, shift=shift)
    mantissa = mantissa >> 1
    mantissa[at] *= 2
    return with_constants(step, mantissa=mantissa, shift=shift - 1)


def _other_bias(step: Instruction, program: Program, rng: Draw) -> Instruction | None:
    own = step.constants.get("bias")
    if own is None:
        return None
    others = [
        s.constants["bias"]
        for s in program.instructions
        if s is not step and "bias" in s.constants and s.constants["bias"].shape == own.shape
    ]
    if not others:
        return None
    return with_constants(step, bias=others[int(rng.integers(len(others)))].astype(own.dtype))


def _other_weights(step: Instruction, program: Program, rng: Draw) -> Instruction | None:
    own = step.constants["weight"]
    others = [
        s.constants["weight"]
        for s in program.instructions
        if s is not step and "weight" in s.constants and s.constants["weight"].shape == own.shape
    ]
    return with_constants(step, weight=others[int(rng.integers(len(others)))]) if others else None


def _full_window(step: Instruction, program: Program, rng: Draw) -> Instruction | None:
    """Borders of an average are divided by the whole window."""
    if not any(step.attributes["pads"]):
        return None
    if "count" in step.constants:
        count = step.constants["count"]
        return with_constants(step, count=np.full_like(count, count.max()))
    mantissa, shift = step.constants["mantissa"], step.constants["shift"]
    middle = tuple(n // 2 for n in mantissa.shape)
    return with_constants(
        step,
        mantissa=np.full_like(mantissa, mantissa[middle]),
        shift=np.full_like(shift, shift[middle]),
    )


def _other_axis(step: Instruction, program: Program, rng: Draw) -> Instruction | None:
    shape = program.tensors[step.inputs[0]].shape
    axes = [a for a in range(1, len(shape)) if a != step.attributes["axis"] and shape[a] > 1]
    return with_attributes(step, axis=int(rng.choice(axes))) if axes else None


def _input_scale(step: Instruction, program: Program, rng: Draw) -> Instruction | None:
    """Requantized with the scale of the input, not with the node's own."""
    own, read = (program.tensors[n] for n in (step.outputs[0], step.inputs[0]))
    if not own.scale or not read.scale or abs(own.scale / read.scale - 1) < 0.05:
        return None
    return _requantized(step, own.scale / read.scale)


def _half(step: Instruction, program: Program, rng: Draw) -> Instruction | None:
    """Shifted by a bit too many, or too few."""
    return _requantized(step, float(rng.choice([0.5, 2.0])))


def _requantized(step: Instruction, ratio: float) -> Instruction | None:
    if "factor" in step.constants:
        return with_constants(step, factor=step.constants["factor"] * ratio)
    mantissa = step.constants.get("mantissa")
    if mantissa is None or step.op == "average_pool":
        return None
    shift = step.constants["shift"]
    other = np.rint(mantissa * ratio / 4).astype(mantissa.dtype)  # within 32 bits
    fits = shift.min() > 2 and np.abs(other).max() < 1 << 31
    return with_constants(step, mantissa=other, shift=shift - 2) if fits else None


def _tap(step: Instruction, program: Program, rng: Draw) -> Instruction | None:
    """The last column of the kernel is not read."""
    weight = step.constants["weight"].copy()
    if weight.shape[-1] < 3:
        return None
    weight[..., -1] = 0
    return with_constants(step, weight=weight)


def _scaled_bias(step: Instruction, program: Program, rng: Draw) -> Instruction | None:
    """The bias is shifted as if its scale were another."""
    bias = step.constants.get("bias")
    if bias is None:
        return None
    return with_constants(step, bias=(bias * float(rng.choice([0.25, 4.0]))).astype(bias.dtype))


def _rounded_resize(step: Instruction, program: Program, rng: Draw) -> Instruction | None:
    """The nearest element above, not below."""
    indices = {
        role: np.clip(x + (np.arange(len(x)) % 2), 0, x.max())
        for role, x in step.constants.items()
        if role.startswith("index_")
    }
    return with_constants(step, **indices)


def _aligned(step: Instruction, program: Program, rng: Draw) -> Instruction | None:
    """A linear Resize that aligns corners."""
    shape, own = (program.tensors[n].shape for n in (step.inputs[0], step.outputs[0]))
    other: dict[str, np.ndarray] = {}
    for axis in (2, 3):
        places = np.arange(own[axis]) * (shape[axis] - 1) / (own[axis] - 1)
        low = np.floor(places).astype(np.int64)
        most = max(int(step.constants[f"weight_{axis}"].max()), 1)
        unit = 1 << (most - 1).bit_length()
        other |= {f"low_{axis}": low, f"high_{axis}": np.minimum(low + 1, shape[axis] - 1)}
        other |= {f"weight_{axis}": np.rint((places - low) * unit).astype(np.int64)}
    return with_constants(step, **other)


def _no_pads(step: Instruction, program: Program, rng: Draw) -> Instruction | None:
    """A max pool whose window lies elsewhere."""
    pads = step.attributes["pads"]
    half = len(pads) // 2
    if not any(pads):
        return None
    moved = [*(p - 1 for p in pads[:half]), *(p + 1 for p in pads[half:])]
    return with_attributes(step, pads=moved)


def _slope_lost(step: Instruction, program: Program, rng: Draw) -> Instruction | None:
    """A LeakyRelu, or what is like it, as a Relu."""
    zero, table = program.tensors[step.outputs[0]].zero_point, step.constants["table"]
    return with_constants(step, table=np.maximum(table, table.dtype.type(zero)))


def _one_filter(weight: np.ndarray) -> np.ndarray:
    out = weight.copy()
    out[0] = np.roll(weight[0].ravel(), 1).reshape(weight[0].shape)
    return out


NODE_FAULTS: Mapping[str, NodeFault] = {
    "operand doubled": NodeFault(ADDS, _doubled, ("operands", "scale")),
    "bias of another layer": NodeFault(LAYERS, _other_bias, ("bias",)),
    "weights of another layer": NodeFault(LAYERS, _other_weights, ("weights",)),
    "filters rolled": NodeFault(
        CONV, weight_fault(lambda w: np.roll(w, 1, 0)), ("weights", "channel_order")
    ),
    "one filter rolled": NodeFault(
        CONV,
        weight_fault(_one_filter),
        ("weights", "partial"),
    ),
    "window of an average": NodeFault(
        ("average_pool", "average_twice"), _full_window, ("padding", "pooling")
    ),
    "softmax's axis": NodeFault(("softmax", "softmax_twice"), _other_axis, ("axis",)),
    "scale of the input": NodeFault((*LAYERS, "mul", "rescale", "mean"), _input_scale, ("scale",)),
    "shift by one": NodeFault((*LAYERS, "mul", "rescale", "mean"), _half, ("scale",)),
    "column of taps": NodeFault(CONV, _tap, ("weights",)),
    "bias shifted": NodeFault(LAYERS, _scaled_bias, ("bias",)),
    "weights of 2 bits less": NodeFault(
        LAYERS, weight_fault(lambda w: w >> 2 << 2), ("weights", "width")
    ),
    "nearest above": NodeFault(
        ("resize_nearest",), _rounded_resize, ("resize", "shift", "padding")
    ),
    "corners aligned": NodeFault(("resize_linear", "resize_twice"), _aligned, ("resize", "zoom")),
    "pool moved": NodeFault(("max_pool",), _no_pads, ("padding", "shift")),
    "slope lost": NodeFault(("lookup",), _slope_lost, ("activation", "table", "clipped")),
    "bias in 16 bits": NodeFault(
        LAYERS, bias_fault(lambda b: b.astype(np.int16)), ("bias", "overflow")
    ),
}


def _gamma(x: np.ndarray, rng: Draw) -> np.ndarray:
    low, high = float(x.min()), float(x.max())
    power = float(rng.choice([1 / 2.2, 2.2]))
    return low + ((x - low) / (high - low)) ** power * (high - low)


def _letterbox(x: np.ndarray, rng: Draw) -> np.ndarray:
    """A quarter of the rows is border: here at the bottom, there around."""
    rows = picture_axes(x)[0]
    return np.roll(x, x.shape[rows] // 8, rows)


def _limited(x: np.ndarray, rng: Draw) -> np.ndarray:
    """Video levels, 16 to 235 of 255."""
    low, high = float(x.min()), float(x.max())
    return low + (high - low) * (16 + (x - low) / (high - low) * 219) / 255


def _planar(x: np.ndarray, rng: Draw) -> np.ndarray:
    """Two color planes exchanged: green and blue."""
    colors = 6 - sum(picture_axes(x))
    return np.take(x, [0, 2, 1], colors) if x.shape[colors] == 3 else x


def _cropped(x: np.ndarray, rng: Draw) -> np.ndarray:
    """The middle half, twice as large."""
    rows, columns = picture_axes(x)
    for axis in (rows, columns):
        n = x.shape[axis]
        x = np.take(x, n // 4 + np.arange(n) // 2, axis)
    return x


def _normalized_again(x: np.ndarray, rng: Draw) -> np.ndarray:
    return (x - x.mean()) / max(float(x.std()), 1e-6)


def _means(x: np.ndarray, rng: Draw) -> np.ndarray:
    """The means of the channels subtracted in the other order."""
    colors = 6 - sum(picture_axes(x))
    if x.shape[colors] != 3:
        return x
    by = np.array([0.35, 0.0, -0.35]) * float(x.std())
    return x + by.reshape([3 if a == colors else 1 for a in range(4)])


PICTURES = ("curve", "brightness", "scale", "normalization", "gamma", "zero_point", "bias")
INPUT_FAULTS: Mapping[str, InputFault] = {
    "gamma": InputFault(_gamma, PICTURES),
    "letterbox moved": InputFault(_letterbox, ("shift", "offset", "padding")),
    "video levels": InputFault(_limited, PICTURES),
    "planes exchanged": InputFault(_planar, ("channel_order",)),
    "cropped": InputFault(_cropped, ("zoom",)),
    "normalized again": InputFault(_normalized_again, PICTURES),
    "means reversed": InputFault(_means, PICTURES),
}
