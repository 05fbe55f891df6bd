"""The layers of a program: subgraph, operations and DDR bytes of each.

A multiply-accumulate counts as two OPs; other arithmetic as one per element read; data movement as
none. DDR traffic is modelled in npumake.perf.maps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from npumake.bundle.program import Instruction, Program
from npumake.engine.subgraphs import cpu_nodes
from npumake.perf.kinds import NO_WORK, Around, Work, work_of
from npumake.perf.maps import Maps, constant_bytes
from npumake.quant.precision.int16_share import multiply_accumulates

# Instructions between subgraphs: nodes on the CPU, and quantize and dequantize at the border.
ON_CPU = frozenset({"onnx", "quantize", "dequantize"})
MOVES = frozenset(
    {
        "concat",
        "depth_to_space",
        "gather",
        "pad",
        "reshape",
        "resize_nearest",
        "slice",
        "space_to_depth",
        "take",
        "tile",
        "transpose",
    }
)
WINDOWS = frozenset({"average_pool", "average_twice", "max_pool"})


@dataclass(frozen=True)
class LayerCost:
    """One instruction on the unit, run once per frame; sizes in bytes."""

    name: str
    op: str
    subgraph: int
    macs: int
    ops: int
    loaded: int
    stored: int
    origin: tuple[str, ...]
    work: Work = NO_WORK
    reads_int16: bool = False

    @property
    def moved(self) -> int:
        return self.loaded + self.stored


def layers_of(
    program: Program, on_chip: int | None, nv12: frozenset[str] = frozenset()
) -> tuple[LayerCost, ...]:
    """The layers in execution order. `on_chip` is how many bytes of a tensor stay on the chip; if
    None, every tensor goes through DDR. Inputs in `nv12` load half their bytes."""
    numbers = subgraphs_of(program)
    maps = Maps(program, numbers, on_chip, nv12)
    around = Around(
        program,
        {name: step for step in program.instructions for name in step.outputs},
        frozenset(program.tensors).difference(
            *(step.inputs for i, step in enumerate(program.instructions) if i in numbers)
        ),
    )
    return tuple(
        LayerCost(
            step.name,
            step.op,
            numbers[index],
            macs(step, program),
            operations(step, program),
            constant_bytes(step) + maps.loaded(index),
            maps.stored(index),
            step.origin,
            work_of(step, around, macs(step, program)),
            reads_int16(step, program),
        )
        for index, step in enumerate(program.instructions)
        if index in numbers
    )


def in_int8(layers: Iterable[LayerCost], int16_rate: float | None) -> list[LayerCost]:
    """The layers with the int8 multiply-accumulates that take as long; the same without a rate."""
    return [_slowed(e, int16_rate) if int16_rate and e.reads_int16 else e for e in layers]


def _slowed(layer: LayerCost, int16_rate: float) -> LayerCost:
    work = layer.work
    if work.kind == "conv":
        work = work._replace(amount=round(work.amount / int16_rate))
    return replace(layer, macs=round(layer.macs / int16_rate), work=work)


def subgraphs_of(program: Program) -> dict[int, int]:
    """Instruction index -> subgraph, counted from 0, for instructions on the unit.

    An instruction behind a CPU node that reads from subgraph n is in subgraph n + 1 or later.
    """
    last = dict.fromkeys(
        program.inputs, (-1, False)
    )  # (last subgraph, whether produced on the unit)
    subgraphs: dict[int, int] = {}
    for index, step in enumerate(program.instructions):
        is_npu = step.op not in ON_CPU and step.op != "constant"
        number = max(
            (
                crossings + (is_npu and not was_npu)
                for crossings, was_npu in map(last.__getitem__, step.inputs)
            ),
            default=-1,
        )
        if is_npu:
            subgraphs[index] = number = max(number, 0)
        last |= dict.fromkeys(step.outputs, (number, is_npu))
    return subgraphs


def macs(step: Instruction, program: Program) -> int:
    """Multiply-accumulates of an instruction; 0 for other operators."""
    count = MACS.get(step.op)
    return count(step, program) if count else 0


def reads_int16(step: Instruction, program: Program) -> bool:
    """Whether it multiplies 16-bit activations."""
    return any(program.tensors[name].dtype == "int16" for name in step.inputs)


def int16_share(program: Program) -> float:
    """The share of the multiply-accumulates that reads int16, those on the CPU included; 0 without
    any."""
    counts = [(step, macs(step, program)) for step in program.instructions]
    on_cpu = sum(multiply_accumulates(node) for node in cpu_nodes(program))
    total = on_cpu + sum(count for _, count in counts)
    wide = sum(count for step, count in counts if count and reads_int16(step, program))
    return wide / total if total else 0.0


def operations(step: Instruction, program: Program) -> int:
    if step.op in MACS:
        return 2 * macs(step, program)
    if step.op in MOVES:
        return 0
    outputs = sum(_count(program, name) for name in step.outputs)
    if step.op in WINDOWS:
        return outputs * math.prod(step.attributes["kernel"])
    return max([outputs, *(_count(program, name) for name in step.inputs)])


def _conv(step: Instruction, program: Program) -> int:
    return _count(program, step.outputs[0]) * math.prod(step.constants["weight"].shape[1:])


def _conv_transpose(step: Instruction, program: Program) -> int:
    return _count(program, step.inputs[0]) * math.prod(step.constants["weight"].shape[1:])


def _matmul(step: Instruction, program: Program) -> int:
    return _count(program, step.outputs[0]) * program.tensors[step.inputs[0]].shape[-1]


MACS: Mapping[str, Callable[[Instruction, Program], int]] = {
    "conv": _conv,
    "conv_transpose": _conv_transpose,
    "matmul": _matmul,
}


def _count(program: Program, name: str) -> int:
    return math.prod(program.tensors[name].shape)
