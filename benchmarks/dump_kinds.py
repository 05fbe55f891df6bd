"""Faults for dumps, by kind: each as a wrong driver, compiler, kernel or camera makes it.

VALUES change one tensor's codes; NODES change an instruction, and the tensor and all behind it are
computed so; ROUNDED finish a node otherwise; INPUTS change the picture, with or without the input
in the dump; WHOLE are of another sample or width. Each names the kinds of causes that are right.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from dump_boards import Arrays, Board, tensors_of
from dump_input_faults import INPUTS, InputFault, picture_axes
from dump_node_faults import NODES, NodeFault
from dump_tensors import continued, files_of, shows, values_of, with_attributes, with_constants
from dump_unseen_faults import INPUT_FAULTS, NODE_FAULTS, VALUE_FAULTS
from dump_value_faults import VALUES, Draw, ValueFault, codes_of

from npumake.bundle.program import Instruction, Program, Tensor
from npumake.debug.dumps.conventions import entry
from npumake.engine.reference import ReferenceSession
from npumake.errors import GraphError

FINE = 8  # bits below a code
ROUNDED: Mapping[str, tuple[Callable[[np.ndarray, Tensor], np.ndarray], tuple[str, ...]]] = {
    "rounded down": (lambda x, grid: np.floor(x), ("rounding",)),
    "truncated": (lambda x, grid: np.trunc(x), ("rounding",)),
    "sums overflow": (
        lambda x, grid: (
            (np.rint(x * 3) + grid.zero_point).astype(grid.dtype).astype(np.float64)
            - grid.zero_point
        ),
        ("overflow", "scale"),
    ),
}
FINISHED = ("conv", "matmul", "mul", "rescale", "average_pool")
WHOLE: Mapping[str, tuple[str, ...]] = {
    "other sample": ("other_sample", "other_input", "stale"),
    "half of another sample": ("other_sample", "other_input", "stale", "partial"),
    "input's code by one": ("zero_point",),
    "int8 board": ("width",),
}
NEW = (*VALUES, *NODES, *ROUNDED, *INPUTS, *WHOLE)
UNSEEN = (*VALUE_FAULTS, *NODE_FAULTS, *INPUT_FAULTS)
OF_VALUES = {**VALUES, **VALUE_FAULTS}
OF_NODES = {**NODES, **NODE_FAULTS}
OF_INPUTS = {**INPUTS, **INPUT_FAULTS}


class Planted(NamedTuple):
    tensor: str
    dump: Arrays
    causes: tuple[str, ...]


def planted_kind(at: Board, kind: str, rng: Draw) -> Planted | None:
    """A dump with a fault of the kind; None if the drawn place shows none."""
    if kind in OF_VALUES:
        return _of_value(at, OF_VALUES[kind], rng)
    if kind in OF_NODES:
        return _of_node(at, OF_NODES[kind], rng)
    if kind in ROUNDED:
        return _of_rounding(at, *ROUNDED[kind], rng)
    if kind in OF_INPUTS:
        return _of_input(at, OF_INPUTS[kind], rng)
    return _of_whole(at, kind, rng)


def _spots(at: Board, images: bool) -> list[str]:
    """Tensors with more than two values, behind the quantized input."""
    names = [n for step in at.program.instructions if step.op != "quantize" for n in step.outputs]
    grids = {n: at.program.tensors[n] for n in names}
    return [
        n
        for n, grid in grids.items()
        if grid.scale is not None
        and grid.dtype != "int32"
        and n in at.dump
        and (
            len(grid.shape) == 4 and min(grid.shape[1:]) > 3 if images else np.prod(grid.shape) > 8
        )
    ]


def _of_value(at: Board, fault: ValueFault, rng: Draw) -> Planted | None:
    spots = _spots(at, fault.images)
    if not spots or (fault is VALUES["padded channels"] and not at.is_last):
        return None
    name, ours = str(rng.choice(spots)), values_of(at)
    right, grid = ours[name], at.program.tensors[name]
    wrong = np.ascontiguousarray(fault.change(right, grid, rng))
    if wrong.shape != right.shape or not shows(wrong, right):
        return None
    values = {**ours, name: wrong}
    if rng.random() < 0.5:
        values = continued(at.program, values, name)
    return Planted(name, files_of(at, values), fault.causes)


def _of_node(at: Board, fault: NodeFault, rng: Draw) -> Planted | None:
    steps = [s for s in at.program.instructions if s.op in fault.ops and s.outputs[0] in at.dump]
    if not steps:
        return None
    step = steps[int(rng.integers(len(steps)))]
    other = fault.change(step, at.program, rng)
    if other is None:
        return None
    if isinstance(other, Program):
        return _of_program(at, step, other, fault.causes)
    instructions = tuple(other if one is step else one for one in at.program.instructions)
    return _of_program(at, step, replace(at.program, instructions=instructions), fault.causes)


def _of_program(
    at: Board, step: Instruction, other: Program, causes: tuple[str, ...]
) -> Planted | None:
    name, right = step.outputs[0], values_of(at)
    if other.tensors[step.inputs[0]] != at.program.tensors[step.inputs[0]]:
        session = ReferenceSession(other)  # only this node reads the grid so
        wrong = np.asarray(next(iter(session.execute(step, [right[n] for n in step.inputs]))))
        values = continued(at.program, {**right, name: wrong}, name)
    else:
        values = tensors_of(other, at.samples.read(0))
    if not shows(values[name], right[name]):
        return None
    return Planted(name, files_of(at, values), causes)


def _of_rounding(
    at: Board, rule: Callable[[np.ndarray, Tensor], np.ndarray], causes: tuple[str, ...], rng: Draw
) -> Planted | None:
    """A node whose results are rounded or limited otherwise, from sums with FINE more bits."""
    steps = [s for s in at.program.instructions if s.op in FINISHED and "shift" in s.constants]
    steps = [s for s in steps if s.outputs[0] in at.dump]
    if not steps:
        return None
    step, right = steps[int(rng.integers(len(steps)))], values_of(at)
    name = step.outputs[0]
    grid = at.program.tensors[name]
    big = np.iinfo(np.int32)
    fine = with_constants(step, shift=step.constants["shift"] - FINE)
    fine = with_attributes(fine, low=int(big.min), high=int(big.max))
    tensors = {**at.program.tensors, name: replace(grid, dtype="int32", zero_point=0)}
    other = replace(
        at.program,
        tensors=tensors,
        instructions=(fine,),
        inputs=step.inputs,
        outputs=(name,),
    )
    try:
        (codes,) = ReferenceSession(other).execute(fine, [right[n] for n in step.inputs])
    except GraphError:  # a kernel without wide results
        return None
    whole = rule(np.asarray(codes, np.float64) / (1 << FINE), grid) + grid.zero_point
    wrong = np.clip(whole, step.attributes["low"], step.attributes["high"]).astype(grid.dtype)
    if not shows(wrong, right[name]):
        return None
    values = continued(at.program, {**right, name: wrong}, name)
    return Planted(name, files_of(at, values), causes)


def _of_input(at: Board, fault: InputFault, rng: Draw) -> Planted | None:
    fed = dict(at.samples.read(0))
    (name,) = fed
    x = fed[name]
    if x.ndim != 4 or min(x.shape[a] for a in picture_axes(x)) < 8:
        return None
    wrong = fault.change(x.astype(np.float64), rng)
    if wrong.shape != x.shape or np.allclose(wrong, x):
        return None
    whole = np.rint(wrong) if x.dtype.kind in "iu" else wrong
    values = tensors_of(at.program, {name: np.ascontiguousarray(whole).astype(x.dtype)})
    dump = files_of(at, values)
    entry = _entry(at)
    if rng.random() < 0.5:  # the board wrote no input
        dump = {n: v for n, v in dump.items() if n not in entry}
    first = next((n for n in _in_order(at) if n in dump), None)
    return None if first is None else Planted(first, dump, fault.causes)


def _of_whole(at: Board, kind: str, rng: Draw) -> Planted | None:
    causes = WHOLE[kind]
    if kind == "int8 board":
        return None if at.narrow is None else Planted(_first_of(at), dict(at.narrow), causes)
    values = values_of(at)
    if kind == "input's code by one":
        name = next((n for n in _entry(at) if n in at.dump and n not in at.program.inputs), None)
        if name is None:
            return None
        wrong = codes_of(values[name].astype(np.int64) + 1, at.program.tensors[name])
        return Planted(
            name, files_of(at, continued(at.program, {**values, name: wrong}, name)), causes
        )
    name = str(rng.choice(_spots(at, False)))
    other = values_of(at, int(rng.integers(1, len(at.samples))))[name]
    if kind == "half of another sample":
        half = other.size // 2
        flat = values[name].copy().ravel()
        flat[half:] = other.ravel()[half:]
        other = flat.reshape(other.shape)
    if not shows(other, values[name]):
        return None
    return Planted(name, files_of(at, {**values, name: other}), causes)


def _first_of(at: Board) -> str:
    narrow = at.narrow or {}
    return next(
        n for n in _in_order(at) if n in narrow and not np.array_equal(narrow[n], at.dump[n])
    )


def _in_order(at: Board) -> list[str]:
    steps = at.program.instructions
    return [*at.program.inputs, *(n for step in steps for n in step.outputs)]


def _entry(at: Board) -> list[str]:
    """The inputs and their quantized tensors."""
    steps = entry(at.program)
    return [*at.program.inputs, *(n for step in steps for n in step.outputs)]
