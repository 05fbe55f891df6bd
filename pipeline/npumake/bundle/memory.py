"""The memory plan of a program: the offset of each tensor in one arena.

A tensor is live from the step that computes it (an input: before the first step) to its last
reader (an output: behind the last step). Tensors that are live at the same step share no byte,
with one exception:

    in place    an elementwise step writes its result over an operand of the same size that has
                no later reader

Such tensors form one block. Each block goes into the smallest gap that fits among the blocks live
at the same time. Two orders are tried, largest first and first computed first; the plan with the
lower peak wins. `live_peak` is the lower bound: the largest sum of live blocks. Constants lie in
the weights. Source: greedy by size, best fit, of Pisarchyk and Lee, "Efficient Memory Management
for Deep Neural Net Inference", 2020.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from npumake.bundle.program import Instruction, Program, Tensor

ALIGNMENT = 64
# Elementwise instructions.
IN_PLACE = frozenset({"add", "add_twice", "div", "lookup", "mul", "prelu", "rescale", "reshape"})
# The search for gaps is quadratic; in a larger program blocks share no memory.
MAX_BLOCKS = 4096


@dataclass(frozen=True)
class MemoryPlan:
    """In bytes: the offset of each tensor, the arena's size, and its lower bound."""

    offsets: Mapping[str, int]
    peak: int
    live_peak: int


@dataclass
class TensorBlock:
    """Tensors that use the same memory one after another, live from `first` to `last`."""

    names: list[str]
    size: int
    first: int
    last: int

    def meets(self, other: TensorBlock) -> bool:
        return self.first <= other.last and other.first <= self.last


def planned(program: Program) -> MemoryPlan:
    """The plan; it does not depend on the machine."""
    blocks = blocks_of(program)
    live_peak = max(live_bytes(blocks, len(program.instructions)))
    if len(blocks) > MAX_BLOCKS:
        return _memory(_in_a_row(blocks), live_peak)
    plans = [_memory(_packed(sorted(blocks, key=order)), live_peak) for order in ORDERS]
    return min(plans, key=lambda plan: plan.peak)


def tensor_bytes(tensor: Tensor) -> int:
    return math.prod(tensor.shape) * np.dtype(tensor.dtype).itemsize


def lives(program: Program) -> dict[str, tuple[int, int]]:
    """The first and last step at which each tensor is live, in the order of computation."""
    first = dict.fromkeys(program.inputs, -1)
    last = dict(first)
    for index, step in enumerate(program.instructions):
        last |= dict.fromkeys(step.inputs, index)
        first |= dict.fromkeys(step.outputs, index)
        last |= dict.fromkeys(step.outputs, index)
    last |= dict.fromkeys(program.outputs, len(program.instructions))
    constants = {
        name for step in program.instructions if step.op == "constant" for name in step.outputs
    }
    return {name: (first[name], last[name]) for name in first if name not in constants}


def blocks_of(program: Program) -> list[TensorBlock]:
    """One block for each tensor but constants, in the order of computation."""
    blocks: dict[str, TensorBlock] = {}
    span = lives(program)
    makers = {name: step for step in program.instructions for name in step.outputs}
    for name, (first, last) in span.items():
        operand = _operand_in_place(name, makers.get(name), program, span)
        if operand is None:
            size = -(-tensor_bytes(program.tensors[name]) // ALIGNMENT) * ALIGNMENT
            blocks[name] = TensorBlock([name], size, first, last)
        else:
            blocks[name] = blocks[operand]
            blocks[name].names.append(name)
            blocks[name].last = last
    return [block for name, block in blocks.items() if block.names[0] == name]


def live_bytes(blocks: list[TensorBlock], steps: int) -> list[int]:
    """Live bytes before the first step, at each step, and behind the last."""
    change = [0] * (steps + 3)
    for block in blocks:
        change[block.first + 1] += block.size
        change[block.last + 2] -= block.size
    total, totals = 0, []
    for added in change[:-1]:
        total += added
        totals.append(total)
    return totals


def _operand_in_place(
    name: str, maker: Instruction | None, program: Program, span: Mapping[str, tuple[int, int]]
) -> str | None:
    """The operand that the tensor overwrites; None if it needs memory of its own."""
    if maker is None or maker.op not in IN_PLACE:
        return None
    result, step = program.tensors[name], span[name][0]
    for read in maker.inputs:
        if read not in span or span[read][1] != step:
            continue
        operand = program.tensors[read]
        if operand.dtype == result.dtype and _same_places(operand, result, maker.op):
            return read
    return None


def _same_places(operand: Tensor, result: Tensor, op: str) -> bool:
    if op == "reshape":
        return math.prod(operand.shape) == math.prod(result.shape)
    return operand.shape == result.shape


def _by_size(block: TensorBlock) -> tuple[int, int, list[str]]:
    return (-block.size, block.first, block.names)


def _by_time(block: TensorBlock) -> tuple[int, int, list[str]]:
    return (block.first, -block.size, block.names)


ORDERS = (_by_size, _by_time)


def _memory(placements: list[tuple[int, TensorBlock]], lower_bound: int) -> MemoryPlan:
    offsets = {name: start for start, block in placements for name in block.names}
    peak = max((start + block.size for start, block in placements), default=0)
    return MemoryPlan({name: offsets[name] for name in sorted(offsets)}, peak, lower_bound)


def _packed(order: list[TensorBlock]) -> list[tuple[int, TensorBlock]]:
    placements: list[tuple[int, TensorBlock]] = []
    for block in order:
        around = sorted((start, other.size) for start, other in placements if block.meets(other))
        gaps = [gap for gap in _gaps(around) if gap[1] >= block.size]
        end = max((start + size for start, size in around), default=0)
        start = min(gaps, key=lambda gap: (gap[1], gap[0]))[0] if gaps else end
        placements.append((start, block))
    return placements


def _gaps(around: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Start and size of each gap between placements, which are sorted by start."""
    free = 0
    for start, size in around:
        if start > free:
            yield free, start - free
        free = max(free, start + size)


def _in_a_row(blocks: list[TensorBlock]) -> list[tuple[int, TensorBlock]]:
    ends = accumulate((block.size for block in blocks), initial=0)
    return list(zip(ends, blocks, strict=False))  # the last end starts no block
