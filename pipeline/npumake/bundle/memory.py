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
from bisect import bisect_right, insort
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from npumake.bundle.program import Instruction, Program, Tensor

ALIGNMENT = 64
# Elementwise instructions.
IN_PLACE = frozenset({"add", "add_twice", "div", "lookup", "mul", "prelu", "rescale", "reshape"})
# Pairs of blocks that are live at one step, each of which the search for gaps looks at. In a
# program with more of them blocks share no memory.
MAX_PAIRS = 4096 * 4096


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


Placement = tuple[int, TensorBlock]  # where a block starts


class LiveBlocks:
    """The placed blocks, by the steps at which they are live.

    A node of a binary tree over the steps, the root 1, holds the blocks that are live at all of its
    steps and not at all of its parent's: O(log steps) nodes for each block.
    """

    def __init__(self, steps: int) -> None:
        self._leaves = steps + 2  # -1, before the first step, to `steps`, behind the last
        self._live: dict[int, list[Placement]] = {}
        self._begin: list[tuple[int, int, int]] = []  # first step, start, size; sorted

    def place(self, start: int, block: TensorBlock) -> None:
        low, high = block.first + 1 + self._leaves, block.last + 2 + self._leaves
        while low < high:
            for node in ([low] if low % 2 else []) + ([high - 1] if high % 2 else []):
                self._live.setdefault(node, []).append((start, block))
            low, high = (low + 1) // 2, high // 2
        insort(self._begin, (block.first, start, block.size))

    def around(self, block: TensorBlock) -> list[tuple[int, int]]:
        """Start and size of the placed blocks that are live while `block` is, sorted."""
        around, node = list[tuple[int, int]](), block.first + 1 + self._leaves
        while node:
            around += ((start, other.size) for start, other in self._live.get(node, ()))
            node //= 2
        low, high = (bisect_right(self._begin, (at, math.inf)) for at in (block.first, block.last))
        return sorted([*around, *((start, size) for _, start, size in self._begin[low:high])])


def planned(program: Program) -> MemoryPlan:
    """The plan; it does not depend on the machine."""
    blocks, steps = blocks_of(program), len(program.instructions)
    live_peak = max(live_bytes(blocks, steps))
    if _pairs(blocks, steps) > MAX_PAIRS:
        return _memory(_in_a_row(blocks), live_peak)
    plans = [_memory(_packed(sorted(blocks, key=order), steps), live_peak) for order in ORDERS]
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


def _pairs(blocks: list[TensorBlock], steps: int) -> int:
    """How many pairs of blocks are live at one step: the live ones whenever one begins."""
    ones = [TensorBlock(block.names, 1, block.first, block.last) for block in blocks]
    live = live_bytes(ones, steps)
    return sum(live[block.first + 1] for block in blocks)


def _memory(placements: list[Placement], lower_bound: int) -> MemoryPlan:
    offsets = {name: start for start, block in placements for name in block.names}
    peak = max((start + block.size for start, block in placements), default=0)
    return MemoryPlan({name: offsets[name] for name in sorted(offsets)}, peak, lower_bound)


def _packed(order: list[TensorBlock], steps: int) -> list[Placement]:
    placements, live = list[Placement](), LiveBlocks(steps)
    for block in order:
        around = live.around(block)
        gaps = [gap for gap in _gaps(around) if gap[1] >= block.size]
        end = max((start + size for start, size in around), default=0)
        start = min(gaps, key=lambda gap: (gap[1], gap[0]))[0] if gaps else end
        placements.append((start, block))
        live.place(start, block)
    return placements


def _gaps(around: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Start and size of each gap between placements, which are sorted by start."""
    free = 0
    for start, size in around:
        if start > free:
            yield free, start - free
        free = max(free, start + size)


def _in_a_row(blocks: list[TensorBlock]) -> list[Placement]:
    ends = accumulate((block.size for block in blocks), initial=0)
    return list(zip(ends, blocks, strict=False))  # the last end starts no block
