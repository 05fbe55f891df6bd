"""TRANSLATIONS: instructions as ONNX operators on floats that hold integers
(npumake.engine.floats).

Instructions without an exact translation run in NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod

import numpy as np

from npumake.bundle.program import Instruction, Program
from npumake.engine import products
from npumake.engine.floats import (
    CODES,
    DOUBLE,
    FLOAT64,
    INT32,
    SINGLE,
    InexactError,
    TranslatedCall,
    clamped,
    finished,
    refuse_inexact,
    rescaled,
    rounded,
)
from npumake.graph import Building, Value
from npumake.kernels.arrays import Int64

BEYOND_ANY_AXIS = 1 << 62  # elements, more than any axis has


def translated(
    building: Building, step: Instruction, program: Program, values: Mapping[str, Value]
) -> Value:
    """The instruction's output steps; `values` holds its input steps. Raises InexactError."""
    tensors = program.tensors
    grids, output = tuple(tensors[name] for name in step.inputs), tensors[step.outputs[0]]
    read = tuple(values[name] for name in step.inputs)
    return TRANSLATIONS[step.op](TranslatedCall(building, step, grids, output, read))


def is_translatable(step: Instruction, program: Program) -> bool:
    """Whether the instruction has a translation, regardless of its bounds."""
    around = [program.tensors[name] for name in (*step.inputs, *step.outputs)]
    typed = all(tensor.dtype in (*CODES, "float32") for tensor in around)
    return step.op in TRANSLATIONS and typed


def _add(call: TranslatedCall) -> Value:
    mantissa, shift = call.step.constants["mantissa"], call.step.constants["shift"]
    bounds = [call.largest(index) * abs(int(mantissa[index])) for index in range(2)]
    refuse_inexact(sum(bounds), DOUBLE)
    left, right = (
        call.add(
            "Mul",
            call.add("Cast", x, to=FLOAT64),
            call.constant(np.asarray(np.ldexp(float(m), -shift)), np.float64),
        )
        for x, m in zip(call.read, mantissa, strict=True)
    )
    return clamped(call, rounded(call, call.add("Add", left, right)))


def _moved(op: str, name: str) -> Callable[[TranslatedCall], Value]:
    def move(call: TranslatedCall) -> Value:
        moved = call.add(op, call.read[0], **{name: call.step.attributes[name]})
        return finished(call, moved, call.largest())

    return move


def _reshape(call: TranslatedCall) -> Value:
    shape = call.constant(np.array(call.step.attributes["shape"]), np.int64)
    return finished(call, call.add("Reshape", call.read[0], shape), call.largest())


def _pad(call: TranslatedCall) -> Value:
    """Pads the rescaled steps; the fill is a code already."""
    moved, attributes = finished(call, call.read[0], call.largest()), call.step.attributes
    mode, zero = attributes["mode"], call.output.zero_point
    if mode == "wrap":
        raise InexactError  # needs a newer operator than this opset
    around = call.constant(np.array(attributes["around"]).T.reshape(-1), np.int64)
    if mode != "constant":
        return call.add("Pad", moved, around, mode=mode)
    fill = np.array(attributes.get("fill", zero)).clip(attributes["low"], attributes["high"])
    return call.add("Pad", moved, around, call.constant(fill - zero, np.float32))


def _gather(call: TranslatedCall) -> Value:
    elements = _gathered(
        call, call.read[0], call.step.constants["indices"], call.step.attributes["axis"]
    )
    return finished(call, elements, call.largest())


def _slice(call: TranslatedCall) -> Value:
    """An end before index 0 becomes an end further below 0 than the axis is long."""
    axes, starts, ends, steps = zip(*call.step.attributes["spans"], strict=True)
    far = [-BEYOND_ANY_AXIS if end is None else end for end in ends]
    columns = [call.constant(np.array(column), np.int64) for column in (starts, far, axes, steps)]
    return finished(call, call.add("Slice", call.read[0], *columns), call.largest())


def _take(call: TranslatedCall) -> Value:
    flat = call.add("Reshape", call.read[0], call.constant(np.array([-1]), np.int64))
    return finished(call, _gathered(call, flat, call.step.constants["indices"], 0), call.largest())


def _tile(call: TranslatedCall) -> Value:
    after = call.output.shape
    before = (1,) * (len(after) - len(call.inputs[0].shape)) + call.inputs[0].shape
    repeats = call.constant(np.array(after) // np.array(before), np.int64)
    whole = call.add("Reshape", call.read[0], call.constant(np.array(before), np.int64))
    return finished(call, call.add("Tile", whole, repeats), call.largest())


def _blocks(op: str, *names: str) -> Callable[[TranslatedCall], Value]:
    def move(call: TranslatedCall) -> Value:
        attributes = {name: call.step.attributes[name] for name in names}
        return finished(call, call.add(op, call.read[0], **attributes), call.largest())

    return move


def _resize_nearest(call: TranslatedCall) -> Value:
    pixels = call.read[0]
    for axis in call.step.attributes["axes"]:
        pixels = _gathered(call, pixels, call.step.constants[f"index_{axis}"], axis)
    return finished(call, pixels, call.largest())


def _gathered(call: TranslatedCall, x: Value, indices: np.ndarray, axis: int) -> Value:
    return call.add("Gather", x, call.constant(indices, np.int64), axis=axis)


def _symmetric_bounds(bound: int) -> tuple[Int64, Int64]:
    return np.asarray(-bound, np.int64), np.asarray(bound, np.int64)


def _concat(call: TranslatedCall) -> Value:
    joined = call.add("Concat", *_on_one_grid(call), axis=call.step.attributes["axis"])
    return clamped(call, joined)


def _selected(op: str) -> Callable[[TranslatedCall], Value]:
    return lambda call: clamped(call, call.add(op, *_on_one_grid(call)))


def _on_one_grid(call: TranslatedCall) -> list[Value]:
    mantissa, shift = call.step.constants["mantissa"], call.step.constants["shift"]
    return [
        rescaled(call, x, _symmetric_bounds(call.largest(index)), (mantissa[index], shift[index]))
        for index, x in enumerate(call.read)
    ]


def _lookup(call: TranslatedCall) -> Value:
    grid, table = call.inputs[0], call.step.constants["table"].astype(np.int64)
    first = call.constant(np.array(grid.zero_point - np.iinfo(grid.dtype).min), np.float32)
    index = call.add("Cast", call.add("Add", call.read[0], first), to=INT32)
    return call.add("Gather", call.constant(table - call.output.zero_point, np.float32), index)


def _max_pool(call: TranslatedCall) -> Value:
    window, kernel = call.window(), call.step.attributes["kernel"]
    if max(call.step.attributes["pads"]) >= min(kernel):
        raise InexactError  # onnxruntime refuses windows entirely in the padding
    largest = call.add("MaxPool", call.read[0], kernel_shape=kernel, **window)
    return finished(call, largest, call.largest())


def _average_pool(call: TranslatedCall) -> Value:
    """The sum is a convolution with ones."""
    kernel, channels = call.step.attributes["kernel"], call.inputs[0].shape[1]
    bound = refuse_inexact(call.largest() * prod(kernel), SINGLE)
    kernel_of_ones = call.constant(np.ones((channels, 1, *kernel)), np.float32)
    total = call.add("Conv", call.read[0], kernel_of_ones, group=channels, **call.window())
    return finished(call, total, bound)


def _mean(call: TranslatedCall) -> Value:
    axes, keep = call.step.attributes["axes"], call.step.attributes["keepdims"]
    bound = call.largest() * prod(call.inputs[0].shape[axis] for axis in axes)
    at = call.constant(np.array(axes), np.int64)
    total = call.add("ReduceSum", call.read[0], at, keepdims=int(keep))
    return finished(call, total, refuse_inexact(bound, SINGLE))


def _extreme(op: str) -> Callable[[TranslatedCall], Value]:
    def reduce(call: TranslatedCall) -> Value:
        axes, keep = call.step.attributes["axes"], int(call.step.attributes["keepdims"])
        return finished(call, call.add(op, call.read[0], axes=axes, keepdims=keep), call.largest())

    return reduce


def _quantize(call: TranslatedCall) -> Value:
    """Divides as ONNX does, and rounds ties as the chip does. NaN is refused earlier."""
    scale = call.constant(np.array(call.output.scale), np.float32)
    steps = call.add("Div", call.read[0], scale)
    if "rounding" in call.step.attributes:
        nearest = rounded(call, call.add("Cast", steps, to=FLOAT64))
    else:
        nearest = call.add("Round", steps)
    limits, zero = np.iinfo(call.output.dtype), call.output.zero_point
    low, high = (call.constant(np.array(n - zero), np.float32) for n in (limits.min, limits.max))
    return call.add("Clip", nearest, low, high)


def _constant(call: TranslatedCall) -> Value:
    steps = call.step.constants["values"].astype(np.int64) - call.output.zero_point
    refuse_inexact(int(np.abs(steps).max(initial=0)), SINGLE)
    return call.constant(steps, np.float32)


def _dequantize(call: TranslatedCall) -> Value:
    scale = call.step.constants.get("scale", np.array(call.inputs[0].scale))
    return call.add("Mul", call.read[0], call.constant(scale, np.float32))


TRANSLATIONS: dict[str, Callable[[TranslatedCall], Value]] = {
    "add": _add,
    "average_pool": _average_pool,
    "concat": _concat,
    "constant": _constant,
    "conv": products.conv,
    "depth_to_space": _blocks("DepthToSpace", "blocksize", "mode"),
    "dequantize": _dequantize,
    "gather": _gather,
    "lookup": _lookup,
    "matmul": products.matmul,
    "max": _extreme("ReduceMax"),
    "max_pool": _max_pool,
    "maximum": _selected("Max"),
    "mean": _mean,
    "min": _extreme("ReduceMin"),
    "minimum": _selected("Min"),
    "mul": products.mul,
    "pad": _pad,
    "quantize": _quantize,
    "resize_nearest": _resize_nearest,
    "rescale": lambda call: finished(call, call.read[0], call.largest()),
    "reshape": _reshape,
    "slice": _slice,
    "space_to_depth": _blocks("SpaceToDepth", "blocksize"),
    "take": _take,
    "tile": _tile,
    "transpose": _moved("Transpose", "perm"),
}
