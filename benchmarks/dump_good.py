"""Right dumps, as boards write them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from dump_boards import Arrays, Board, tensors_of
from dump_tensors import files_of, values_of, with_attributes
from dump_value_faults import Draw

from npumake.engine.reference import ReferenceSession

RULES = ("half_even", "half_up", "half_away", "twice")
GOOD = ("exact", "thinned", "real", *(f"{rule}" for rule in RULES), "jitter", "much jitter")


def good_dump(at: Board, way: str, rng: Draw) -> Arrays:
    """A right dump as boards write it: of some tensors, in real values, rounded by another rule, or
    with some codes of every layer one away, each layer computed from the one before."""
    if way in RULES:
        steps = tuple(
            with_attributes(s, rounding=way) if "shift" in s.constants and s.op == "conv" else s
            for s in at.program.instructions
        )
        return files_of(at, tensors_of(replace(at.program, instructions=steps), at.samples.read(0)))
    if "jitter" in way:
        return files_of(at, _jittered(at, 0.12 if way == "much jitter" else 0.03, rng))
    files = files_of(at, values_of(at))
    if way == "real":
        grids = at.program.tensors
        return {
            n: x
            if grids[n].scale is None
            else (x.astype(np.float32) - grids[n].zero_point) * np.float32(grids[n].scale)
            for n, x in files.items()
        }
    return (
        files if way == "exact" else {n: x for n, x in files.items() if rng.random() < 0.4} or files
    )


def _jittered(at: Board, share: float, rng: Draw) -> Arrays:
    session, values = ReferenceSession(at.program), dict(at.samples.read(0))
    for step in at.program.instructions:
        results = session.execute(step, [values[n] for n in step.inputs])
        for name, x in zip(step.outputs, results, strict=True):
            values[name] = np.asarray(x)
            if step.op in ("conv", "matmul", "add", "add_twice", "mul", "fully_connected_twice"):
                off = rng.choice([-1, 0, 1], x.shape, p=[share / 2, 1 - share, share / 2])
                low, high = step.attributes["low"], step.attributes["high"]
                values[name] = np.clip(x.astype(np.int64) + off, low, high).astype(x.dtype)
    return values
