"""KINDS: the inputs, types, shapes, attributes and constants that each kernel accepts.

One row per kind of instruction: the number and types of input tensors, and the function that checks
attributes and constants and returns the output shape. `npumake.engine.program_checks` validates
programs against it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from npumake.bundle.program import SUMS
from npumake.engine import arithmetic_shapes, move_shapes, window_shapes
from npumake.engine.call import Call
from npumake.engine.checks import Shape, constant
from npumake.kernels.gemmlowp import LINEAR_BITS
from npumake.kernels.resize import WEIGHT_BITS

CODES = frozenset({"int8", "uint8", "int16", "uint16"})
SIGNED = frozenset({"int8", "int16"})
SUMMED = CODES | {SUMS}
FLOATS = frozenset({"float16", "float32", "float64"})
PLACES = frozenset({"int64"})
ANY_NUMBER = 1 << 16


@dataclass(frozen=True)
class InstructionKind:
    """The operands that a kernel accepts. `shape` returns the output shape, or raises MisfitError.

    `factors` are prefixes of mantissas and shifts that broadcast to the output. With `channels`,
    the channel axis, factors and bias are scalars or one number per channel."""

    shape: Callable[[Call], Shape]
    reads: tuple[int, int] = (1, 1)  # at least, at most
    takes: frozenset[str] = CODES
    makes: frozenset[str] = CODES
    factors: tuple[str, ...] = ("",)
    channels: int | None = None
    clamps: bool = True


TWO = (2, 2)
ONE_OR_MORE = (1, ANY_NUMBER)
LINEAR = ("low", "high", "weight")
PRODUCT = (1, 2)

KINDS: Mapping[str, InstructionKind] = {
    "add": InstructionKind(arithmetic_shapes.added, TWO, factors=()),
    "add_twice": InstructionKind(arithmetic_shapes.added_twice, TWO, factors=()),
    "arg_max": InstructionKind(arithmetic_shapes.place, makes=PLACES, factors=(), clamps=False),
    "arg_min": InstructionKind(arithmetic_shapes.place, makes=PLACES, factors=(), clamps=False),
    "average_pool": InstructionKind(window_shapes.pooled),
    "average_twice": InstructionKind(window_shapes.counted, factors=()),
    "concat": InstructionKind(move_shapes.joined, ONE_OR_MORE, factors=()),
    "constant": InstructionKind(
        lambda call: constant(call, "values").shape, (0, 0), factors=(), clamps=False
    ),
    "conv": InstructionKind(window_shapes.convolved, makes=SUMMED, channels=1),
    "conv_transpose": InstructionKind(window_shapes.transposed_convolved, channels=1),
    "depth_to_space": InstructionKind(move_shapes.deep_to_spacious),
    "dequantize": InstructionKind(
        arithmetic_shapes.dequantized,
        takes=SUMMED,
        makes=frozenset({"float32"}),
        factors=(),
        clamps=False,
    ),
    "div": InstructionKind(arithmetic_shapes.quotient, TWO, factors=()),
    "fully_connected_twice": InstructionKind(
        arithmetic_shapes.real_product, factors=(), channels=-1
    ),
    "gather": InstructionKind(move_shapes.gathered),
    "layer_norm": InstructionKind(arithmetic_shapes.normalized_rows, factors=()),
    "lookup": InstructionKind(arithmetic_shapes.looked_up, factors=(), clamps=False),
    "matmul": InstructionKind(arithmetic_shapes.product, PRODUCT, makes=SUMMED, channels=-1),
    "max": InstructionKind(arithmetic_shapes.reduced),
    "max_pool": InstructionKind(window_shapes.pooled),
    "maximum": InstructionKind(arithmetic_shapes.selection, ONE_OR_MORE, factors=()),
    "mean": InstructionKind(arithmetic_shapes.reduced),
    "min": InstructionKind(arithmetic_shapes.reduced),
    "minimum": InstructionKind(arithmetic_shapes.selection, ONE_OR_MORE, factors=()),
    "mul": InstructionKind(arithmetic_shapes.elementwise, TWO),
    "pad": InstructionKind(move_shapes.padded),
    "prelu": InstructionKind(arithmetic_shapes.input_shape, factors=("", "negative_")),
    "prelu_twice": InstructionKind(arithmetic_shapes.leaky, factors=("", "negative_")),
    "quantize": InstructionKind(
        arithmetic_shapes.quantized, takes=FLOATS, factors=(), clamps=False
    ),
    "rescale": InstructionKind(arithmetic_shapes.input_shape),
    "reshape": InstructionKind(move_shapes.reshaped),
    "resize_linear": InstructionKind(move_shapes.resized(LINEAR, WEIGHT_BITS, 2)),
    "resize_nearest": InstructionKind(move_shapes.resized(("index",), 0, ANY_NUMBER)),
    "resize_twice": InstructionKind(
        move_shapes.resized(LINEAR, LINEAR_BITS, 2, (2, 3)), factors=(), clamps=False
    ),
    "slice": InstructionKind(move_shapes.sliced),
    "softmax": InstructionKind(arithmetic_shapes.exponentials),
    "softmax_twice": InstructionKind(
        arithmetic_shapes.along, takes=SIGNED, factors=(), clamps=False
    ),
    "space_to_depth": InstructionKind(move_shapes.spacious_to_deep),
    "sum": InstructionKind(arithmetic_shapes.reduced),
    "take": InstructionKind(move_shapes.gathered_flat),
    "tile": InstructionKind(move_shapes.tiled),
    "transpose": InstructionKind(move_shapes.transposed, takes=SUMMED, makes=SUMMED),
}
