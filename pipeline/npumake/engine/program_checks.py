"""Validates programs before kernels run.

A bundle may be untrusted. After this check against KINDS, an exception inside a kernel is a bug of
npumake and is not caught.
"""

from __future__ import annotations

import numpy as np

from npumake.bundle.program import Instruction, Program, Tensor
from npumake.engine.call import Call
from npumake.engine.checks import (
    MisfitError,
    Shape,
    bounded,
    constant,
    one_of,
    refuse,
    refuse_unstorable,
    whole,
    within,
)
from npumake.engine.kinds import KINDS, SUMMED, InstructionKind
from npumake.errors import GraphError
from npumake.kernels.rounding import MANTISSA_BITS, ROUNDED

ROUNDINGS = (*ROUNDED, "twice")
# A factor is a mantissa below 2**31 times a power of two within float64's exponents.
FACTORS = {"mantissa": (1 - (1 << MANTISSA_BITS), (1 << MANTISSA_BITS) - 1), "shift": (-1200, 1200)}
MIN_SCALE, MAX_SCALE = 2.0**-149, 2.0**127  # of float32


def validate(program: Program) -> None:
    """Raises GraphError for an instruction that its kernel does not accept."""
    for step in program.instructions:
        if step.op == "onnx":
            continue
        if step.op not in KINDS:
            raise GraphError(f"`{step.name}` needs a kernel that does not exist: `{step.op}`")
        try:
            _validate_step(step, KINDS[step.op], program)
        except MisfitError as misfit:
            raise GraphError(f"`{step.name}` cannot be computed: {misfit}") from misfit


def _validate_step(step: Instruction, kind: InstructionKind, program: Program) -> None:
    refuse(len(step.outputs) != 1, f"`{step.op}` has one output, not {len(step.outputs)}")
    low, high = kind.reads
    refuse(not low <= len(step.inputs) <= high, f"`{step.op}` reads no {len(step.inputs)}")
    read = tuple(program.tensors[name] for name in step.inputs)
    call = Call(step, read, program.tensors[step.outputs[0]])
    for tensor in read:
        _validate_tensor(tensor, kind.takes, step.op)
    _validate_tensor(call.output, kind.makes, step.op)
    out_shape = kind.shape(call)
    refuse(
        out_shape != call.output.shape,
        f"its output is {list(out_shape)}, declared is {list(call.output.shape)}",
    )
    _validate_factors(call, kind, out_shape)
    if kind.clamps:
        _validate_clamp(call)


def _validate_tensor(tensor: Tensor, dtypes: frozenset[str], op: str) -> None:
    refuse(tensor.dtype not in dtypes, f"`{op}` does not support {tensor.dtype} there")
    refuse_unstorable(tensor.shape, "a tensor")
    if tensor.dtype not in SUMMED:
        refuse(tensor.scale is not None, f"{tensor.dtype} has no scale")
        return
    limits = np.iinfo(tensor.dtype)
    scaled = tensor.scale is not None and MIN_SCALE <= tensor.scale <= MAX_SCALE
    refuse(not scaled, f"{tensor.scale} is not a valid scale")
    zero = limits.min <= tensor.zero_point <= limits.max
    refuse(not zero, f"{tensor.zero_point} is not a zero point of {tensor.dtype}")


def _validate_factors(call: Call, kind: InstructionKind, out_shape: Shape) -> None:
    for sign in kind.factors:
        mantissa, shift = (constant(call, f"{sign}{part}") for part in ("mantissa", "shift"))
        refuse(mantissa.shape != shift.shape, "a mantissa and its shift differ in shape")
        _validate_laid(f"{sign}mantissa", mantissa, kind, out_shape)
    for role in call.step.constants:
        part = role.rpartition("_")[2]
        if part in FACTORS:
            bounded(call, role, *FACTORS[part])
    if "bias" in call.step.constants:
        _validate_laid("bias", constant(call, "bias"), kind, out_shape)


def _validate_laid(role: str, values: np.ndarray, kind: InstructionKind, out_shape: Shape) -> None:
    if kind.channels is None:
        within(role, values.shape, out_shape)
    elif values.shape not in ((), (1,), out_shape[kind.channels :][:1]):
        raise MisfitError(
            f"`{role}` of {list(values.shape)} is none per channel of {list(out_shape)}"
        )


def _validate_clamp(call: Call) -> None:
    limits = np.iinfo(call.output.dtype)
    low, high = (whole(call, end, int(limits.min), int(limits.max)) for end in ("low", "high"))
    refuse(low > high, f"it clamps from {low} to {high}")
    one_of(call, "rounding", ROUNDINGS)
