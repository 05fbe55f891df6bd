"""Faults for dumps: each changes one tensor as a wrong driver or compiler would.

A fault maps the codes in the file, their grid and a random generator to the wrong array. In half of
the cases the tensors behind it are computed from the wrong one; in the others only the dump is
wrong. `rebuilt` faults are in the file: one tensor has another scale or zero point, and LiteRT
computes with it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
from dump_boards import Arrays, Board, by_litert

from npumake.bundle.program import Tensor
from npumake.engine.exact import ExactSession
from npumake.engine.reference import ReferenceSession


def scale(x: np.ndarray, grid: Tensor, rng: np.random.Generator) -> np.ndarray:
    factor = float(rng.choice([0.25, 0.5, 0.7, 0.8, 1.25, 1.5, 2.0, 3.0]))
    return _codes((x.astype(np.float64) - grid.zero_point) * factor + grid.zero_point, grid)


def real_scale(x: np.ndarray, grid: Tensor, rng: np.random.Generator) -> np.ndarray:
    """Real values, dequantized with the scale of another tensor."""
    real = (x.astype(np.float32) - grid.zero_point) * np.float32(grid.scale or 1.0)
    return real * np.float32(rng.uniform(1.1, 4.0) ** float(rng.choice([-1, 1])))


def zero_point(x: np.ndarray, grid: Tensor, rng: np.random.Generator) -> np.ndarray:
    shifts = [int(rng.integers(1, 40)), -int(rng.integers(1, 40)), -grid.zero_point or 7]
    if x.dtype == np.int8 and rng.random() < 0.25:
        return x ^ np.int8(-128)
    return _codes(x.astype(np.float64) + int(rng.choice(shifts)), grid)


def layout(x: np.ndarray, grid: Tensor, rng: np.random.Generator) -> np.ndarray:
    """Another order in memory, in the file's shape or in its own."""
    if x.ndim != 4:
        return np.ascontiguousarray(x.T).reshape(x.shape)
    order = [(0, 3, 1, 2), (0, 2, 1, 3), (0, 3, 2, 1)][int(rng.integers(3))]
    moved = np.ascontiguousarray(x.transpose(order))
    return moved if order == (0, 3, 1, 2) and rng.random() < 0.3 else moved.reshape(x.shape)


def channel_order(x: np.ndarray, grid: Tensor, rng: np.random.Generator) -> np.ndarray:
    count = x.shape[-1]
    order = np.arange(count)[::-1] if rng.random() < 0.5 else rng.permutation(count)
    return np.ascontiguousarray(x[..., order])


def width(x: np.ndarray, grid: Tensor, rng: np.random.Generator) -> np.ndarray:
    if x.dtype == np.int8:
        return x >> 4 << 4
    way = int(rng.integers(4))
    if way == 0:
        return x >> 8 << 8
    if way == 1:
        return (x >> 8).astype(np.int8)
    step = 256.0 if way == 2 else 32767 / 127
    return _codes(np.clip(np.rint(x / step), -128, 127) * step, grid)


def clipped(x: np.ndarray, grid: Tensor, rng: np.random.Generator) -> np.ndarray:
    part, zero = float(rng.choice([0.25, 0.5, 0.7])), grid.zero_point
    low, high = (zero + (int(end) - zero) * part for end in (x.min(), x.max()))
    return _codes(np.clip(x, int(low), int(high)).astype(np.float64), grid)


def bias(x: np.ndarray, grid: Tensor, rng: np.random.Generator) -> np.ndarray:
    return _codes(x + np.rint(rng.normal(0, 12, x.shape[-1])), grid)


def byte_order(x: np.ndarray, grid: Tensor, rng: np.random.Generator) -> np.ndarray:
    return x.byteswap()


def uninitialized(x: np.ndarray, grid: Tensor, rng: np.random.Generator) -> np.ndarray:
    return np.zeros_like(x)


def _codes(values: np.ndarray, grid: Tensor) -> np.ndarray:
    limits = np.iinfo(grid.dtype)
    return np.clip(np.rint(values), limits.min, limits.max).astype(grid.dtype)


Fault = Callable[[np.ndarray, Tensor, np.random.Generator], np.ndarray]
JUDGED: Mapping[str, Fault] = {
    "scale": scale,
    "real scale": real_scale,
    "layout": layout,
    "zero_point": zero_point,
    "width": width,
    "clipped": clipped,
}
OTHERS: Mapping[str, Fault] = {
    "channel_order": channel_order,
    "bias": bias,
    "byte_order": byte_order,
    "uninitialized": uninitialized,
}
FAULTS = {**JUDGED, **OTHERS}
LAYERS = ("conv", "add_twice", "fully_connected_twice")
REBUILT = ("rebuilt scale", "rebuilt zero_point")
KIND = {"real scale": "scale", "rebuilt scale": "scale", "rebuilt zero_point": "zero_point"}


def planted(at: Board, kind: str, rng: np.random.Generator) -> tuple[str, Arrays] | None:
    """The wrong tensor, and the whole dump; None if the drawn tensor shows no fault."""
    spots = [name for name in _spots(at) if _takes(kind, at, name)]
    if not spots:
        return None
    name = str(rng.choice(spots))
    grid = at.program.tensors[name]
    right = at.dump[name]
    if kind in REBUILT:
        dump = _rebuilt(at, name, kind, rng)
        return (name, dump) if _shows(dump[name], right) else None
    wrong = FAULTS[kind](right, grid, rng)
    if not _shows(wrong, right):
        return None
    if wrong.shape != right.shape or wrong.dtype != right.dtype or rng.random() < 0.5:
        return name, {**at.dump, name: wrong}
    return name, {**at.dump, **_behind(at, name, wrong)}


def _shows(wrong: np.ndarray, right: np.ndarray) -> bool:
    """Whether a fault changes more than a rounding would."""
    if wrong.shape != right.shape or wrong.dtype != right.dtype:
        return True
    apart = np.abs(wrong.astype(np.float64) - right)
    return bool((apart > 1).mean() >= 0.02 or (apart > 0).mean() >= 0.5)


def _spots(at: Board) -> list[str]:
    names = (name for step in at.program.instructions for name in step.outputs)
    return [n for n in names if n in at.dump and at.program.tensors[n].scale is not None]


def _takes(kind: str, at: Board, name: str) -> bool:
    x = at.dump[name]
    if x.dtype != at.program.tensors[name].dtype:
        return False
    if kind in ("layout", "channel_order", "bias"):
        return x.ndim == 4 and x.shape[1] > 1 and x.shape[3] > 1
    if kind in REBUILT:  # the grids of other operators are fixed
        return name in {s.outputs[0] for s in at.program.instructions if s.op in LAYERS}
    return kind != "byte_order" or x.dtype == np.int16


def _behind(at: Board, name: str, wrong: np.ndarray) -> Arrays:
    """The tensors that the program computes from the wrong one, in the file's layout."""
    steps, inner = at.program.instructions, [n for s in at.program.instructions for n in s.outputs]
    session = ReferenceSession(at.program)
    values = dict(at.samples.read(0))
    values |= dict(
        zip(inner, ExactSession(at.program, watched=inner).run(inner, values), strict=True)
    )
    changed, dump = {name}, {name: wrong}
    values[name] = _ours(wrong, at.dump[name], values[name])
    for step in steps:
        if changed & set(step.inputs) and not changed & set(step.outputs):
            results = session.execute(step, [values[n] for n in step.inputs])
            for output, result in zip(step.outputs, results, strict=True):
                changed.add(output)
                if output in at.dump:
                    dump[output] = _theirs(result, at.dump[output], values[output])
                values[output] = result
    return dump


def _order(theirs: np.ndarray, ours: np.ndarray) -> tuple[int, ...]:
    """The order of the file's axes: channels last if the shape has it."""
    last = (0, 2, 3, 1) if ours.ndim == 4 else tuple(range(ours.ndim))
    return last if ours.transpose(last).shape == theirs.shape else tuple(range(ours.ndim))


def _ours(wrong: np.ndarray, theirs: np.ndarray, ours: np.ndarray) -> np.ndarray:
    return wrong.transpose(np.argsort(_order(theirs, ours))).reshape(ours.shape)


def _theirs(result: np.ndarray, theirs: np.ndarray, ours: np.ndarray) -> np.ndarray:
    if theirs.dtype != result.dtype:
        return theirs
    return np.ascontiguousarray(result.transpose(_order(theirs, ours))).reshape(theirs.shape)


def _rebuilt(at: Board, name: str, kind: str, rng: np.random.Generator) -> Arrays:
    """LiteRT's own tensors, from a file with another grid for this one."""
    grid = at.program.tensors[name]
    if kind == "rebuilt scale":
        other = replace(grid, scale=(grid.scale or 1.0) * float(rng.choice([0.5, 0.8, 1.5, 2.0])))
    else:
        other = replace(
            grid,
            zero_point=int(np.clip(grid.zero_point + int(rng.choice([-30, 9, 30])), -128, 127)),
        )
    program = replace(at.program, tensors={**at.program.tensors, name: other})
    return by_litert(program, at.graph, at.samples.read(0))
