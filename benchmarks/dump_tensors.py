"""The tensors of a board's samples, with changes: what a board computes behind a wrong one."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
from dump_boards import Arrays, Board, in_file, tensors_of

from npumake.bundle.program import Instruction, Program
from npumake.engine.reference import ReferenceSession


@cache
def values_of(at: Board, index: int = 0) -> Arrays:
    return tensors_of(at.program, at.samples.read(index))


def files_of(at: Board, values: Arrays) -> Arrays:
    return {n: in_file(values[n], at.is_last) for n in at.dump}


def continued(program: Program, values: Arrays, name: str) -> Arrays:
    """The tensors that the program computes behind this one."""
    session, found, changed = ReferenceSession(program), dict(values), {name}
    for step in program.instructions:
        if changed & set(step.inputs) and name not in step.outputs:
            results = session.execute(step, [found[n] for n in step.inputs])
            found |= {n: np.asarray(x) for n, x in zip(step.outputs, results, strict=True)}
            changed |= set(step.outputs)
    return found


def shows(wrong: np.ndarray, right: np.ndarray) -> bool:
    """Whether a fault changes more than a rounding would, and leaves values to tell it by."""
    if np.ptp(wrong) == 0:
        return False  # any fault could have made it
    apart = wrong.astype(np.float64) - right
    off, free = np.abs(apart) > 0, right != right.min()
    is_one_way = bool((apart[off] > 0).all() or (apart[off] < 0).all())
    one = is_one_way and off[free].mean() >= 0.9 and off.sum() >= 16 if free.any() else False
    return bool((np.abs(apart) > 1).mean() >= 0.02 or off.mean() >= 0.3 or one)


def with_constants(step: Instruction, **changed: np.ndarray) -> Instruction:
    return replace(step, constants={**step.constants, **changed})


def with_attributes(step: Instruction, **changed: object) -> Instruction:
    return replace(step, attributes={**step.attributes, **changed})
