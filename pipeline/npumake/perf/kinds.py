"""The kind and amount of work of an instruction on the unit's engines.

    conv         multiply-accumulates; times n / c for c channels per group on n lanes
    table        bytes written, by a lookup table or a rescale
    arithmetic   bytes written, or read if more
    concat       bytes written
    mixed        bytes read and written by operators across channels or pixels without weights
    None         no time of its own: fused into another instruction (x * sigmoid(x), a Conv and its
                 shortcut), or data movement of a row or of an output that leaves the unit

Bytes, not numbers: int16 takes the time of two int8. Multiply-accumulates of int16 take that of
`cost.int16_rate` of the target (npumake.perf.layers.in_int8).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from npumake.bundle.memory import tensor_bytes
from npumake.bundle.program import Instruction, Program

TABLE = frozenset({"lookup", "prelu", "prelu_twice", "rescale"})
MIXED = frozenset(
    {"arg_max", "arg_min", "gather", "layer_norm", "matmul", "max", "min", "reshape", "softmax"}
    | {"softmax_twice", "sum", "take", "tile", "transpose"}
)
SHORTCUTS = frozenset({"add", "add_twice"})


class Work(NamedTuple):
    """`channels` are the input channels per group of a Conv; 0 for other work."""

    kind: str | None
    amount: int
    channels: int = 0


NO_WORK = Work(None, 0)


class Around(NamedTuple):
    """The producer of each tensor, and the tensors that no layer on the unit reads."""

    program: Program
    makers: Mapping[str, Instruction]
    leaving: frozenset[str]


def work_of(step: Instruction, around: Around, macs: int) -> Work:
    """The work of a step with `macs` multiply-accumulates."""
    program, weight = around.program, step.constants.get("weight")
    if weight is not None:
        return Work("conv", macs, _channels(step, weight.shape))
    if _comes_along(step, around):
        return NO_WORK
    written = _bytes(step.outputs, program)
    if step.op in TABLE:
        return Work("table", written)
    if step.op == "concat":
        return Work("concat", written)
    read = _bytes(step.inputs, program)
    if step.op in MIXED:
        return Work("mixed", read + written)
    return Work("arithmetic", _arithmetic_bytes(step, read, written))


def _channels(step: Instruction, shape: tuple[int, ...]) -> int:
    """Input channels per group by the weight's shape: Conv (out, in, kernel), ConvTranspose
    (in, out, kernel), MatMul (in, out)."""
    return shape[1] if step.op == "conv" else shape[0] // int(step.attributes.get("group", 1))


def _arithmetic_bytes(step: Instruction, read: int, written: int) -> int:
    """A Slice counts its output, a reduction its input."""
    return (
        written if step.op == "slice" else max(read if len(step.inputs) == 1 else written, written)
    )


def _comes_along(step: Instruction, around: Around) -> bool:
    before = [around.makers[name] for name in step.inputs if name in around.makers]
    if step.op == "mul":  # x * sigmoid(x) is one table
        tables = [earlier for earlier in before if earlier.op == "lookup"]
        return any(table.inputs[0] in step.inputs for table in tables)
    if step.op in SHORTCUTS:
        return any(earlier.op == "conv" for earlier in before)
    if step.op not in ("reshape", "transpose"):
        return False
    shape = around.program.tensors[step.inputs[0]].shape
    return _is_a_row(shape) or around.leaving.issuperset(step.outputs)


def _is_a_row(shape: tuple[int, ...]) -> bool:
    return max(shape, default=1) == math.prod(shape)


def _bytes(names: tuple[str, ...], program: Program) -> int:
    return sum(tensor_bytes(program.tensors[name]) for name in names)
