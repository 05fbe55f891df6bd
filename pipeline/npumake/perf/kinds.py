"""What an instruction asks of the unit's engines: a kind of work, and how much of it.

    conv         multiply-accumulates; with c channels a group of n lanes, n / c times as many
    table        bytes made, by a table or another scale
    arithmetic   bytes made, or read where that is more
    concat       bytes made
    mixed        bytes read and made by what reads across channels or pixels without weights
    None         nothing of its own: it is computed along with another (x * sigmoid(x), a Conv and
                 its shortcut), or moves a row, or what leaves the unit, where it is written

Bytes, not numbers: int16 takes the time of two int8.
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
    """`channels` are those of a group that a Conv multiplies; 0 of anything else."""

    kind: str | None
    amount: int
    channels: int = 0


NOTHING = Work(None, 0)


class Around(NamedTuple):
    """Of a program: what makes each tensor, and the tensors that no layer of the unit reads."""

    program: Program
    makers: Mapping[str, Instruction]
    leaving: frozenset[str]


def work_of(step: Instruction, around: Around, macs: int) -> Work:
    """`macs` are the products of the step."""
    program, weight = around.program, step.constants.get("weight")
    if weight is not None:
        return Work("conv", macs, _channels(step, weight.shape))
    if _comes_along(step, around):
        return NOTHING
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
    """Of the weight of a Conv (out, in, kernel), a ConvTranspose (in, out, kernel), a product (in,
    out)."""
    return shape[1] if step.op == "conv" else shape[0] // int(step.attributes.get("group", 1))


def _arithmetic_bytes(step: Instruction, read: int, written: int) -> int:
    """A part takes what it makes, a mean what it reads."""
    return (
        written if step.op == "slice" else max(read if len(step.inputs) == 1 else written, written)
    )


def _comes_along(step: Instruction, around: Around) -> bool:
    before = [around.makers[name] for name in step.inputs if name in around.makers]
    if step.op == "mul":  # x * sigmoid(x) is one table
        tables = [each for each in before if each.op == "lookup"]
        return any(each.inputs[0] in step.inputs for each in tables)
    if step.op in SHORTCUTS:
        return any(each.op == "conv" for each in before)
    if step.op not in ("reshape", "transpose"):
        return False
    shape = around.program.tensors[step.inputs[0]].shape
    return _is_a_row(shape) or around.leaving.issuperset(step.outputs)


def _is_a_row(shape: tuple[int, ...]) -> bool:
    return max(shape, default=1) == math.prod(shape)


def _bytes(names: tuple[str, ...], program: Program) -> int:
    return sum(tensor_bytes(program.tensors[name]) for name in names)
