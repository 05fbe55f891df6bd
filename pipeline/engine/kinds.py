"""What each kernel takes: KINDS is the table, one row per kind of instruction.

A row says how many tensors the kernel reads and of which types, and what shape it makes of them,
its attributes and its constants. `pipeline.engine.validated` holds programs to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pipeline.bundle.program import SUMS
from pipeline.engine import shaped, shaped_moves, windowed
from pipeline.engine.call import Call
from pipeline.engine.checks import Shape, constant
from pipeline.kernels.gemmlowp import LINEAR_BITS
from pipeline.kernels.resize import WEIGHT_BITS

CODES = frozenset({"int8", "uint8", "int16", "uint16"})
SIGNED = frozenset({"int8", "int16"})
SUMMED = CODES | {SUMS}
FLOATS = frozenset({"float16", "float32", "float64"})
PLACES = frozenset({"int64"})
ANY_NUMBER = 1 << 16


@dataclass(frozen=True)
class Kind:
    """`shape` gives that of the result, or raises MisfitError.

    `factors` are the prefixes of the mantissas and shifts that broadcast to the result. Where there
    are `channels`, the axis of them, factors and bias are one number or one per channel."""

    shape: Callable[[Call], Shape]
    reads: tuple[int, int] = (1, 1)  # at least, at most
    takes: frozenset[str] = CODES
    makes: frozenset[str] = CODES
    factors: tuple[str, ...] = ("",)
    channels: int | None = None
    clamps: bool = True


TWO = (2, 2)
MANY = (1, ANY_NUMBER)
LINEAR = ("low", "high", "weight")
PRODUCT = (1, 2)

KINDS: Mapping[str, Kind] = {
    "add": Kind(shaped.added, TWO, factors=()),
    "add_twice": Kind(shaped.added_twice, TWO, factors=()),
    "arg_max": Kind(shaped.place, makes=PLACES, factors=(), clamps=False),
    "arg_min": Kind(shaped.place, makes=PLACES, factors=(), clamps=False),
    "average_pool": Kind(windowed.pooled),
    "average_twice": Kind(windowed.counted, factors=()),
    "concat": Kind(shaped_moves.joined, MANY, factors=()),
    "constant": Kind(lambda call: constant(call, "values").shape, (0, 0), factors=(), clamps=False),
    "conv": Kind(windowed.convolved, makes=SUMMED, channels=1),
    "conv_transpose": Kind(windowed.transposed_convolved, channels=1),
    "depth_to_space": Kind(shaped_moves.deep_to_spacious),
    "dequantize": Kind(
        shaped.dequantized, takes=SUMMED, makes=frozenset({"float32"}), factors=(), clamps=False
    ),
    "div": Kind(shaped.quotient, TWO, factors=()),
    "fully_connected_twice": Kind(shaped.real_product, factors=(), channels=-1),
    "gather": Kind(shaped_moves.gathered),
    "layer_norm": Kind(shaped.normalized_rows, factors=()),
    "lookup": Kind(shaped.looked_up, factors=(), clamps=False),
    "matmul": Kind(shaped.product, PRODUCT, makes=SUMMED, channels=-1),
    "max": Kind(shaped.reduced),
    "max_pool": Kind(windowed.pooled),
    "maximum": Kind(shaped.selection, MANY, factors=()),
    "mean": Kind(shaped.reduced),
    "min": Kind(shaped.reduced),
    "minimum": Kind(shaped.selection, MANY, factors=()),
    "mul": Kind(shaped.elementwise, TWO),
    "pad": Kind(shaped_moves.padded),
    "prelu": Kind(shaped.same, factors=("", "negative_")),
    "prelu_twice": Kind(shaped.leaky, factors=("", "negative_")),
    "quantize": Kind(shaped.quantized, takes=FLOATS, factors=(), clamps=False),
    "rescale": Kind(shaped.same),
    "reshape": Kind(shaped_moves.reshaped),
    "resize_linear": Kind(shaped_moves.resized(LINEAR, WEIGHT_BITS, 2)),
    "resize_nearest": Kind(shaped_moves.resized(("index",), 0, ANY_NUMBER)),
    "resize_twice": Kind(
        shaped_moves.resized(LINEAR, LINEAR_BITS, 2, (2, 3)), factors=(), clamps=False
    ),
    "slice": Kind(shaped_moves.sliced),
    "softmax": Kind(shaped.exponentials),
    "softmax_twice": Kind(shaped.along, takes=SIGNED, factors=(), clamps=False),
    "space_to_depth": Kind(shaped_moves.spacious_to_deep),
    "sum": Kind(shaped.reduced),
    "take": Kind(shaped_moves.taken),
    "tile": Kind(shaped_moves.tiled),
    "transpose": Kind(shaped_moves.transposed, takes=SUMMED, makes=SUMMED),
}
