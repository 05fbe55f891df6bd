"""The reference engine executes an integer program exactly, with the same result on every machine.

Integers are accumulated without rounding, scaled to the output grid with one factor and one
rounding (npumake.kernels.rounding), shifted by the zero point and clamped. KERNELS is the table of
instructions. Only `onnx` instructions, which the chip leaves to its CPU, compute in float.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from npumake.bundle.program import Instruction, Program
from npumake.custom.operators import NO_OPERATORS, Operators
from npumake.engine import moving_kernels
from npumake.engine.call import Call, steps_of
from npumake.engine.float_session import float_session
from npumake.engine.ort import Feeds
from npumake.engine.program_checks import validate
from npumake.engine.subgraphs import model_of
from npumake.engine.tflite_kernels import (
    add_twice,
    average_twice,
    fully_connected,
    prelu_twice,
    resize_twice,
    softmax_twice,
)
from npumake.errors import GraphError
from npumake.kernels import affine, conv, divide, matmul, pool, resize, table
from npumake.kernels.arrays import NotANumberError, TooWideError
from npumake.kernels.rounding import FixedPoint, rescale, shift_right

# Kernels raise these for unsuitable values; any other exception is a bug.
UNFIT_VALUES = (MemoryError, NotANumberError, TooWideError)


class ReferenceSession:
    """A program ready to run, with the interface of an onnxruntime session.

    Raises GraphError for an instruction that no kernel accepts, or a CPU model beyond the limits.
    """

    def __init__(self, program: Program, operators: Operators = NO_OPERATORS) -> None:
        validate(program)
        self.program = program
        self.input_names = program.inputs
        self.output_names = program.outputs
        self._cpu = {
            # Without fusion a node computes the same bits alone and in a subgraph.
            step.name: float_session(model_of(step), operators, fusion="none")
            for step in program.instructions
            if step.op == "onnx"
        }

    def run(self, names: Sequence[str] | None, feeds: Feeds) -> list[np.ndarray]:
        """Returns the named tensors, outputs or inner ones (integers as codes), for one set of
        feeds.

        Raises GraphError for a missing feed, or one of another shape or type than its input.
        """
        values = dict(self.checked(feeds))
        for step in self.program.instructions:
            read = [values[name] for name in step.inputs]
            values.update(zip(step.outputs, self.execute(step, read), strict=True))
        return [values[name] for name in names or self.output_names]

    def execute(self, step: Instruction, read: Sequence[np.ndarray]) -> Iterable[np.ndarray]:
        """The results of one instruction. Raises GraphError for NaN, for sums beyond int64, and for
        lack of memory."""
        if step.op == "onnx":
            return self._cpu[step.name].run(step.outputs, dict(zip(step.inputs, read, strict=True)))
        tensors = self.program.tensors
        grids = tuple(tensors[name] for name in step.inputs)
        output = tensors[step.outputs[0]]
        try:
            result = KERNELS[step.op](Call(step, grids, output), *read)
        except UNFIT_VALUES as error:
            why = str(error) or "not enough memory"
            raise GraphError(f"`{step.name}` cannot be computed: {why}") from error
        return (
            np.asarray(result, output.dtype),
        )  # NumPy returns scalars instead of arrays of rank 0

    def checked(self, feeds: Feeds) -> Mapping[str, np.ndarray]:
        """The feeds of the inputs. Raises GraphError if one is missing or does not
        fit."""
        for name in self.input_names:
            tensor, array = self.program.tensors[name], feeds.get(name)
            if array is None:
                raise GraphError(f"the input `{name}` is not fed")
            if array.shape != tensor.shape or array.dtype != tensor.dtype:
                raise GraphError(
                    f"`{name}` is fed {array.dtype}{list(array.shape)}, "
                    f"the program takes {tensor.dtype}{list(tensor.shape)}"
                )
        return {name: feeds[name] for name in self.input_names}


def _quantize(call: Call, x: np.ndarray) -> np.ndarray:
    limits = np.iinfo(call.output.dtype)
    scale = np.float32(call.output.scale)
    grid = (scale, call.output.zero_point, limits.min, limits.max)
    return affine.quantize(x, *grid, call.step.attributes.get("rounding", "half_even"))


def _dequantize(call: Call, q: np.ndarray) -> np.ndarray:
    return affine.dequantize(q, call.real_scale, call.inputs[0].zero_point)


def _conv(call: Call, q: np.ndarray) -> np.ndarray:
    kernel = conv.conv if call.step.op == "conv" else conv.conv_transpose
    x, weight = steps_of(q, call.inputs[0]), call.constant("weight")
    total = kernel(x, weight, *call.window(), call.attribute("group"))
    return call.finished(total, trailing=weight.ndim - 2)


def _matmul(call: Call, *read: np.ndarray) -> np.ndarray:
    left, *others = (steps_of(q, grid) for q, grid in zip(read, call.inputs, strict=True))
    return call.finished(matmul.matmul(left, others[0] if others else call.constant("weight")))


def _add(call: Call, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    mantissa, shift = call.constant("mantissa"), call.constant("shift")
    read = ((left, call.inputs[0]), (right, call.inputs[1]))
    a, b = (steps_of(q, grid).astype(np.int64) for q, grid in read)
    total = a * mantissa[0] + b * mantissa[1]
    return call.clamped(shift_right(total, shift, call.attribute("rounding")))


def _mul(call: Call, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    a, b = (steps_of(q, grid) for q, grid in zip((left, right), call.inputs, strict=True))
    if (
        left.dtype.itemsize + right.dtype.itemsize > 3
    ):  # products of two 16-bit codes reach 65535 squared
        a = a.astype(np.int64)
    return call.finished(a * b)


def _div(call: Call, above: np.ndarray, below: np.ndarray) -> np.ndarray:
    factor = FixedPoint(call.constant("mantissa"), call.constant("shift"))
    a, b = steps_of(above, call.inputs[0]), steps_of(below, call.inputs[1])
    return call.clamped(divide.divide(a, b, factor, call.attribute("rounding")))


def _rescale(call: Call, q: np.ndarray) -> np.ndarray:
    return call.finished(steps_of(q, call.inputs[0]))


def _prelu(call: Call, q: np.ndarray) -> np.ndarray:
    steps, rule = steps_of(q, call.inputs[0]), call.attribute("rounding")
    above, below = (
        rescale(
            steps, FixedPoint(call.constant(f"{sign}mantissa"), call.constant(f"{sign}shift")), rule
        )
        for sign in ("", "negative_")
    )
    return call.clamped(np.where(steps >= 0, above, below))


def _lookup(call: Call, q: np.ndarray) -> np.ndarray:
    return table.lookup(q, call.constant("table"), int(np.iinfo(q.dtype).min))


def _softmax(call: Call, q: np.ndarray) -> np.ndarray:
    return call.finished(table.softmax(q, call.constant("exp_table"), call.attribute("axis")))


def _max_pool(call: Call, q: np.ndarray) -> np.ndarray:
    lowest = int(np.iinfo(q.dtype).min)
    largest = pool.max_pool(q, call.attribute("kernel"), *call.window(), lowest=lowest)
    return call.finished(steps_of(largest, call.inputs[0]))


def _average_pool(call: Call, q: np.ndarray) -> np.ndarray:
    steps = steps_of(q, call.inputs[0])
    return call.finished(pool.sum_pool(steps, call.attribute("kernel"), *call.window()))


def _sum(call: Call, q: np.ndarray) -> np.ndarray:
    axes = tuple(call.attribute("axes"))
    keep = call.attribute("keepdims")
    steps = steps_of(q, call.inputs[0])
    return call.finished(steps.sum(axis=axes, keepdims=keep, dtype=np.int64))


def _max(call: Call, q: np.ndarray) -> np.ndarray:
    axes, keep = tuple(call.attribute("axes")), call.attribute("keepdims")
    return call.finished(steps_of(q.max(axis=axes, keepdims=keep), call.inputs[0]))


def _min(call: Call, q: np.ndarray) -> np.ndarray:
    axes, keep = tuple(call.attribute("axes")), call.attribute("keepdims")
    return call.finished(steps_of(q.min(axis=axes, keepdims=keep), call.inputs[0]))


def _arg_max(call: Call, q: np.ndarray) -> np.ndarray:
    place = np.argmax if call.step.op == "arg_max" else np.argmin
    axis, keep = call.attribute("axis"), call.attribute("keepdims")
    if not call.attribute("last"):
        return place(q, axis=axis, keepdims=keep)
    return q.shape[axis] - 1 - place(np.flip(q, axis), axis=axis, keepdims=keep)


def _layer_norm(call: Call, q: np.ndarray) -> np.ndarray:
    axes, epsilon = tuple(call.attribute("axes")), call.constant("epsilon")
    x = divide.normalized(steps_of(q, call.inputs[0]), axes, epsilon)
    total = x * call.constant("gain") + (call.constant("offset") << divide.NORM_BITS)
    return call.clamped(shift_right(total, call.constant("shift"), call.attribute("rounding")))


def _pad(call: Call, q: np.ndarray) -> np.ndarray:
    """The fill is already a code of the output's grid."""
    moved, around = _rescale(call, q), call.attribute("around")
    if call.attribute("mode") != "constant":
        return np.pad(moved, around, mode=call.attribute("mode"))
    fill = call.step.attributes.get("fill", call.output.zero_point)  # absent in older bundles
    return np.pad(moved, around, constant_values=np.clip(fill, *_limits(call)))


def _limits(call: Call) -> tuple[int, int]:
    return call.attribute("low"), call.attribute("high")


def _resized(
    call: Call, q: np.ndarray, interpolated: Callable[[np.ndarray, Sequence[int]], np.ndarray]
) -> np.ndarray:
    """Moves the resized axes last, as the kernels expect, and back."""
    axes = call.attribute("axes")
    last = list(range(q.ndim - len(axes), q.ndim))
    moved = np.moveaxis(steps_of(q, call.inputs[0]), axes, last)
    return call.finished(np.moveaxis(interpolated(moved, axes), last, axes))


def _resize_nearest(call: Call, q: np.ndarray) -> np.ndarray:
    def interpolated(x: np.ndarray, axes: Sequence[int]) -> np.ndarray:
        return resize.nearest(x, [call.constant(f"index_{axis}") for axis in axes])

    return _resized(call, q, interpolated)


def _resize_linear(call: Call, q: np.ndarray) -> np.ndarray:
    def interpolated(x: np.ndarray, axes: Sequence[int]) -> np.ndarray:
        roles = ("low", "high", "weight")
        taps = [resize.Taps(*(call.constant(f"{role}_{axis}") for role in roles)) for axis in axes]
        return resize.linear(x, taps).values

    return _resized(call, q, interpolated)


KERNELS: dict[str, Callable[..., np.ndarray]] = {
    "add": _add,
    "arg_max": _arg_max,
    "arg_min": _arg_max,
    "add_twice": add_twice,
    "average_pool": _average_pool,
    "average_twice": average_twice,
    "concat": moving_kernels.concat,
    "constant": lambda call: call.constant("values"),
    "conv": _conv,
    "conv_transpose": _conv,
    "depth_to_space": moving_kernels.depth_to_space,
    "dequantize": _dequantize,
    "div": _div,
    "fully_connected_twice": fully_connected,
    "gather": moving_kernels.gather,
    "layer_norm": _layer_norm,
    "lookup": _lookup,
    "matmul": _matmul,
    "max": _max,
    "max_pool": _max_pool,
    "maximum": moving_kernels.selected,
    "mean": _sum,
    "min": _min,
    "minimum": moving_kernels.selected,
    "mul": _mul,
    "pad": _pad,
    "prelu": _prelu,
    "prelu_twice": prelu_twice,
    "quantize": _quantize,
    "rescale": _rescale,
    "reshape": moving_kernels.reshape,
    "resize_linear": _resize_linear,
    "resize_nearest": _resize_nearest,
    "resize_twice": resize_twice,
    "slice": moving_kernels.sliced,
    "softmax": _softmax,
    "softmax_twice": softmax_twice,
    "space_to_depth": moving_kernels.space_to_depth,
    "sum": _sum,
    "take": moving_kernels.take,
    "tile": moving_kernels.tile,
    "transpose": moving_kernels.transpose,
}
