"""Faults of one node: the tensor and all behind it are computed from a changed instruction."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from dump_tensors import with_attributes, with_constants

from npumake.bundle.program import Instruction, Program

Draw = np.random.Generator


class NodeFault(NamedTuple):
    ops: tuple[str, ...]
    change: Callable[[Instruction, Program, Draw], Instruction | Program | None]
    causes: tuple[str, ...]


def bias_fault(change: Callable[[np.ndarray], np.ndarray]) -> Callable[..., Instruction | None]:
    def changed(step: Instruction, program: Program, rng: Draw) -> Instruction | None:
        bias = step.constants.get("bias")
        return (
            None
            if bias is None
            else with_constants(step, bias=np.asarray(change(bias), bias.dtype))
        )

    return changed


def weight_fault(change: Callable[[np.ndarray], np.ndarray]) -> Callable[..., Instruction | None]:
    def changed(step: Instruction, program: Program, rng: Draw) -> Instruction | None:
        weight = step.constants.get("weight")
        if weight is None or weight.size < 2:
            return None
        other = np.ascontiguousarray(change(weight))
        return with_constants(step, weight=other) if other.shape == weight.shape else None

    return changed


def _per_tensor(step: Instruction, program: Program, rng: Draw) -> Instruction | None:
    mantissa, shift = step.constants["mantissa"], step.constants["shift"]
    if mantissa.ndim != 1 or len(mantissa) < 2:
        return None
    at = int(np.argmax(mantissa.astype(np.float64) / 2.0 ** shift.astype(np.float64)))
    at = at if rng.random() < 0.5 else 0
    return with_constants(
        step, mantissa=np.full_like(mantissa, mantissa[at]), shift=np.full_like(shift, shift[at])
    )


def _input_grid(step: Instruction, program: Program, rng: Draw) -> Program | None:
    """The node takes its input's zero point for 0."""
    name, grid = step.inputs[0], program.tensors[step.inputs[0]]
    if not grid.zero_point:
        return None
    return replace(program, tensors={**program.tensors, name: replace(grid, zero_point=0)})


def _pad_zero(step: Instruction, program: Program, rng: Draw) -> Program | None:
    """Pads with code 0, not with the zero point."""
    name, pads = step.inputs[0], step.attributes["pads"]
    grid, half = program.tensors[name], len(pads) // 2
    if not grid.zero_point or not any(pads):
        return None
    around = [[0, 0], [0, 0], *([pads[i], pads[half + i]] for i in range(half))]
    limits = np.iinfo(grid.dtype)
    pad = Instruction(
        "pad",
        f"{step.name}_pad",
        (name,),
        (f"{name}_padded",),
        {"mantissa": np.array(1 << 30), "shift": np.array(30)},
        {"around": around, "mode": "constant", "fill": 0, "rounding": "half_even"}
        | {"low": int(limits.min), "high": int(limits.max)},
    )
    shape = tuple(n + sum(ends) for n, ends in zip(grid.shape, around, strict=True))
    other = replace(with_attributes(step, pads=[0] * len(pads)), inputs=pad.outputs)
    steps = [s for one in program.instructions for s in ((pad, other) if one is step else (one,))]
    tensors = {**program.tensors, pad.outputs[0]: replace(grid, shape=shape)}
    return replace(program, instructions=tuple(steps), tensors=tensors)


def _pads_moved(step: Instruction, program: Program, rng: Draw) -> Instruction | None:
    pads = list(step.attributes["pads"])
    half = len(pads) // 2
    if not any(pads):
        return None
    if pads[:half] != pads[half:]:
        return with_attributes(step, pads=[*pads[half:], *pads[:half]])
    return with_attributes(
        step, pads=[*(p - 1 for p in pads[:half]), *(p + 1 for p in pads[half:])]
    )


def _no_clamp(step: Instruction, program: Program, rng: Draw) -> Instruction | None:
    limits = np.iinfo(program.tensors[step.outputs[0]].dtype)
    if (step.attributes["low"], step.attributes["high"]) == (limits.min, limits.max):
        return None
    return with_attributes(step, low=int(limits.min), high=int(limits.max))


def _lower_clamp(step: Instruction, program: Program, rng: Draw) -> Instruction:
    low, high = step.attributes["low"], step.attributes["high"]
    return with_attributes(step, high=int(low + (high - low) * 0.3))


def _one_operand(step: Instruction, program: Program, rng: Draw) -> Instruction:
    mantissa = step.constants["mantissa"].copy()
    mantissa[int(rng.integers(2))] = 0
    return with_constants(step, mantissa=mantissa)


def _operands_swapped(step: Instruction, program: Program, rng: Draw) -> Instruction:
    order = [1, 0, *range(2, len(step.constants["mantissa"]))]
    shift = step.constants["shift"]
    return with_constants(
        step,
        mantissa=step.constants["mantissa"][order],
        **({"shift": shift[order]} if shift.ndim else {}),
    )


def _concat_swapped(step: Instruction, program: Program, rng: Draw) -> Instruction | None:
    order = list(range(len(step.inputs)))[::-1]
    swapped = replace(step, inputs=tuple(step.inputs[i] for i in order))
    return with_constants(
        swapped,
        **{k: v[order] for k, v in step.constants.items() if v.ndim and len(v) == len(order)},
    )


def table_fault(change: Callable[[np.ndarray], np.ndarray]) -> Callable[..., Instruction]:
    def changed(step: Instruction, program: Program, rng: Draw) -> Instruction:
        return with_constants(step, table=np.asarray(change(step.constants["table"])))

    return changed


def _identity(table: np.ndarray) -> np.ndarray:
    limits = np.iinfo(table.dtype)
    return np.arange(limits.min, limits.max + 1).astype(table.dtype)[: len(table)]


CONV, LAYERS = ("conv",), ("conv", "matmul", "fully_connected_twice", "conv_transpose")
ADDS = ("add", "add_twice")
NODES: Mapping[str, NodeFault] = {
    "bias lost": NodeFault(LAYERS, bias_fault(np.zeros_like), ("bias",)),
    "bias doubled": NodeFault(LAYERS, bias_fault(lambda b: 2 * b), ("bias",)),
    "bias reversed": NodeFault(LAYERS, bias_fault(lambda b: b[::-1]), ("bias",)),
    "bias negated": NodeFault(LAYERS, bias_fault(np.negative), ("bias",)),
    "weights turned": NodeFault(CONV, weight_fault(lambda w: np.flip(w, (2, 3))), ("weights",)),
    "weights transposed": NodeFault(CONV, weight_fault(lambda w: w.swapaxes(2, 3)), ("weights",)),
    "weights reversed": NodeFault(CONV, weight_fault(lambda w: np.flip(w, 1)), ("weights",)),
    "weights of 4 bits": NodeFault(LAYERS, weight_fault(lambda w: w >> 4 << 4), ("weights",)),
    "weights unsigned": NodeFault(CONV, weight_fault(lambda w: w ^ np.int8(-128)), ("weights",)),
    "a filter lost": NodeFault(
        CONV,
        weight_fault(lambda w: np.concatenate([w[:-1], 0 * w[-1:]])),
        ("weights", "uninitialized", "bias"),
    ),
    "one factor": NodeFault(CONV, _per_tensor, ("scale",)),
    "input's zero point": NodeFault(LAYERS, _input_grid, ("zero_point",)),
    "padded with 0": NodeFault(CONV, _pad_zero, ("padding",)),
    "pads moved": NodeFault(CONV, _pads_moved, ("padding", "shift")),
    "activation lost": NodeFault((*CONV, *ADDS), _no_clamp, ("activation",)),
    "clamp too low": NodeFault((*CONV, *ADDS), _lower_clamp, ("clipped", "activation")),
    "one operand": NodeFault(ADDS, _one_operand, ("operands", "stale")),
    "operands' scales": NodeFault(ADDS, _operands_swapped, ("operands", "scale")),
    "subtracted": NodeFault(
        ("add_twice",),
        lambda s, p, r: with_attributes(s, sign=-s.attributes["sign"]),
        ("operands",),
    ),
    "concat swapped": NodeFault(("concat",), _concat_swapped, ("operands", "channel_order")),
    "table by one": NodeFault(
        ("lookup",), table_fault(lambda t: np.roll(t, 1)), ("table", "zero_point")
    ),
    "table signed": NodeFault(
        ("lookup",), table_fault(lambda t: np.roll(t, len(t) // 2)), ("table",)
    ),
    "table lost": NodeFault(("lookup",), table_fault(_identity), ("activation", "table", "stale")),
}
