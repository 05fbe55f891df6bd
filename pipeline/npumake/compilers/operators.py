"""Instructions as operators of TensorFlow Lite that compute the same codes.

A node that needs several operators is split: pads other than SAME are a PAD before it, a clamp
other than ReLU a MAXIMUM and a MINIMUM after it, another grid a QUANTIZE.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from npumake.bundle.program import Instruction
from npumake.bundle.program import Tensor as Grid
from npumake.compilers import data_movement, rearranging, tflite_conv
from npumake.compilers.clamps import clamped, refused, regrid
from npumake.compilers.flatfile import NUMBERS, Fields
from npumake.compilers.resizes import resized
from npumake.compilers.tables import tabled
from npumake.compilers.tflite_builder import Order, TFLiteBuilder, plain
from npumake.engine.tflite_rules import shifted, slope_codes
from npumake.graph import array, attribute


def _binary(kind: str) -> Callable[[TFLiteBuilder, Instruction], None]:
    def draw(draft: TFLiteBuilder, step: Instruction) -> None:
        named = "SUB" if step.attributes.get("sign") == -1 else kind
        rank = len(draft.grid(step.outputs[0]).shape)
        whole = [n for n in step.inputs if len(draft.grid(n).shape) == rank]
        varying = [name for name in whole if name not in draft.constants] or whole
        order = draft.order(varying[0]) if varying else plain(rank)
        read = [draft.read_like(name, order) for name in step.inputs]
        # int16 versions would require scales that are powers of two.
        any_scale: Fields = {} if kind == "MUL" else {1: ("?", False)}
        clamped(draft, step, named, read, order, lambda on: {0: ("b", on), **any_scale})

    return draw


def _rescale(draft: TFLiteBuilder, step: Instruction) -> None:
    order = draft.order(step.inputs[0])
    regrid(draft, step, draft.read(step.inputs[0], order), order)


FUNCTIONS = {
    "HardSwish": "HARD_SWISH",
    "LeakyRelu": "LEAKY_RELU",
    "Sigmoid": "LOGISTIC",
    "Tanh": "TANH",
}


def _prelu(draft: TFLiteBuilder, step: Instruction) -> None:
    name, order = step.outputs[0], draft.order(step.inputs[0])
    slope = array(draft.nodes[step.name].inputs[1])
    assert slope is not None
    codes, scale = slope_codes(slope)
    ordered = codes.reshape((1,) * (len(order) - codes.ndim) + codes.shape).transpose(order)
    ordered = (
        ordered[0] if ordered.shape[0] == 1 else ordered
    )  # TOSA needs one axis less, LiteRT broadcasts
    grid = Grid(ordered.shape, "int8", float(scale))
    slopes = draft.constant(f"{name}_slopes", np.ascontiguousarray(ordered), grid)
    draft.draw("PRELU", [draft.read(step.inputs[0], order), slopes], [draft.make(name, order)])


def _hard_sigmoid(draft: TFLiteBuilder, step: Instruction) -> None:
    """An addition, and a multiplication by alpha that moves its codes to the output's grid."""
    name, order = step.outputs[0], draft.order(step.inputs[0])
    node, grid = draft.nodes[step.name], draft.grid(name)
    parts = shifted(node, float(grid.scale or 1.0))
    alpha = float(np.float32(attribute(node, "alpha", 0.2) / 127))
    constants = {
        role: draft.constant(f"{name}_{role}", np.full((1,), code, np.int8), Grid((1,), "int8", s))
        for role, code, s in (("shift", parts.code, parts.scale), ("alpha", 127, alpha))
    }
    inner = draft.hidden_on(replace(grid, scale=parts.inner), order, f"{name}_sum")
    read = [draft.read(step.inputs[0], order), constants["shift"]]
    draft.draw("ADD", read, [inner], {0: ("b", 0), 1: ("?", False)})
    clamped(draft, step, "MUL", [inner, constants["alpha"]], order, lambda on: {0: ("b", on)})


def _lookup(draft: TFLiteBuilder, step: Instruction) -> None:
    node = draft.nodes[step.name]
    op_type = node.op_type
    if op_type == "HardSigmoid":
        _hard_sigmoid(draft, step)
        return
    if op_type not in FUNCTIONS:
        tabled(draft, step)
        return
    order = draft.order(step.inputs[0])
    read = [draft.read(step.inputs[0], order)]
    leak: Fields = {0: ("f", attribute(node, "alpha", 0.01))} if op_type == "LeakyRelu" else {}
    clamped(draft, step, FUNCTIONS[op_type], read, order, leak)


def _softmax(draft: TFLiteBuilder, step: Instruction) -> None:
    axis, order = step.attributes["axis"], draft.order(step.inputs[0])
    if order[-1] != axis:
        order = (*(other for other in order if other != axis), axis)
    read, output = draft.read(step.inputs[0], order), draft.make(step.outputs[0], order)
    draft.draw("SOFTMAX", [read], [output], {0: ("f", 1.0)})


def reduced(kind: str) -> Callable[[TFLiteBuilder, Instruction], None]:
    return lambda draft, step: _reduced(draft, step, kind)


def _reduced(draft: TFLiteBuilder, step: Instruction, kind: str) -> None:
    inputs, out = _axes(draft, step)
    keep = step.attributes["keepdims"]
    clamped(draft, step, kind, inputs, out, {0: ("?", keep)})


def _axes(draft: TFLiteBuilder, step: Instruction) -> tuple[list[int], Order]:
    """The inputs of a reduction, and the axis order of its output."""
    axes, order = step.attributes["axes"], draft.order(step.inputs[0])
    left = [axis for axis in order if axis not in axes]
    if not step.attributes["keepdims"] and left != sorted(left):
        order = plain(len(order))
    read = draft.read(step.inputs[0], order)
    where = np.array(sorted(order.index(axis) for axis in axes), np.int32)
    inputs = [read, draft.constant(f"{step.outputs[0]}_axes", where)]
    return inputs, order if step.attributes["keepdims"] else plain(len(left))


def extreme(kind: str) -> Callable[[TFLiteBuilder, Instruction], None]:
    """A reduction whose output has the input's grid, requantized afterwards."""

    def draw(draft: TFLiteBuilder, step: Instruction) -> None:
        inputs, out = _axes(draft, step)
        name, source = step.outputs[0], step.inputs[0]
        reduced = draft.hidden(source, out, name, draft.grid(name).shape)
        draft.draw(kind, inputs, [reduced], {0: ("?", step.attributes["keepdims"])})
        regrid(draft, step, reduced, out)

    return draw


def arg_max(draft: TFLiteBuilder, step: Instruction) -> None:
    """The first of equal maxima; it removes its axis."""
    if step.attributes["last"]:
        raise refused(step, "it selects the last of equal values")
    name, axis, order = step.outputs[0], step.attributes["axis"], draft.order(step.inputs[0])
    grid, keep = draft.grid(name), step.attributes["keepdims"]
    read, where = draft.read(step.inputs[0], order), np.array(order.index(axis), np.int32)
    read = _complement(draft, step, read, order) if step.op == "arg_min" else read
    inputs = [read, draft.constant(f"{name}_axis", where)]
    left = [other for other in order if other != axis]
    rest = tuple(other - (other > axis) for other in left)
    shape = tuple(n for at, n in enumerate(draft.grid(step.inputs[0]).shape) if at != axis)
    options: Fields = {0: ("b", NUMBERS[grid.dtype])}
    if not keep:
        draft.draw("ARG_MAX", inputs, [draft.make(name, rest)], options)
        return
    place = draft.hidden_on(Grid(shape, grid.dtype), rest, f"{name}_place")
    draft.draw("ARG_MAX", inputs, [place], options)
    draft.reshape(place, draft.make(name, order))


def _complement(draft: TFLiteBuilder, step: Instruction, index: int, order: Order) -> int:
    """Codes -1 - q, whose maximum is where q is smallest: TOSA's form of ARG_MIN is invalid. A
    product with -1 gives them on a grid of zero point -1 - z."""
    grid, name = draft.grid(step.inputs[0]), step.outputs[0]
    minus = draft.constant(
        f"{name}_minus", np.full((1,), -1, grid.dtype), Grid((1,), grid.dtype, 1.0)
    )
    turned = replace(grid, zero_point=-1 - grid.zero_point)
    output = draft.hidden_on(turned, order, f"{name}_turned")
    draft.draw("MUL", [index, minus], [output], {0: ("b", 0)})
    return output


def _constant(draft: TFLiteBuilder, step: Instruction) -> None:
    draft.hold_constant(step.outputs[0], step.constants["values"])


def _as_it_lies(kind: str) -> Callable[[TFLiteBuilder, Instruction], None]:
    def draw(draft: TFLiteBuilder, step: Instruction) -> None:
        order = draft.order(step.inputs[0])
        output = draft.make(step.outputs[0], order)
        draft.draw(kind, [draft.read(step.inputs[0], order)], [output])

    return draw


OPERATORS: Mapping[str, Callable[[TFLiteBuilder, Instruction], None]] = {
    "add_twice": _binary("ADD"),
    "arg_max": arg_max,
    "arg_min": arg_max,
    "average_twice": tflite_conv.pooled("AVERAGE_POOL_2D"),
    "concat": data_movement.concat,
    "constant": _constant,
    "conv": tflite_conv.conv,
    "conv_transpose": tflite_conv.conv_transpose,
    "depth_to_space": rearranging.depth_to_space,
    "dequantize": _as_it_lies("DEQUANTIZE"),
    "fully_connected_twice": tflite_conv.matmul,
    "gather": data_movement.gather,
    "lookup": _lookup,
    "matmul": tflite_conv.matmul,
    "max": extreme("REDUCE_MAX"),
    "max_pool": tflite_conv.pooled("MAX_POOL_2D"),
    "maximum": rearranging.selected("MAXIMUM"),
    "mean": reduced("MEAN"),
    "min": extreme("REDUCE_MIN"),
    "minimum": rearranging.selected("MINIMUM"),
    "mul": _binary("MUL"),
    "pad": data_movement.pad,
    "prelu_twice": _prelu,
    "quantize": _as_it_lies("QUANTIZE"),
    "rescale": _rescale,
    "reshape": data_movement.reshape,
    "resize_nearest": resized,
    "resize_twice": resized,
    "slice": data_movement.sliced,
    "softmax_twice": _softmax,
    "space_to_depth": rearranging.space_to_depth,
    "take": rearranging.take,
    "tile": rearranging.tile,
    "transpose": data_movement.transpose,
}
