"""ONES: the cases with a size of one: an axis, a group, a kernel, a number of channels, a constant.

Each mode of the table of truth is changed in one place:

    axis 1      one size of x; `all axes` and `channels and rows` are several at once
    size 5      a size that several constants share becomes 1 in all of them: one output channel
    x2 axis 1   one size of a further input, or its rank
    c [1, 1]    one number as rank 0, as rank 1 and in the rank of x; a channel's in full rank
    first of c  of a list of axes, pads or sizes only the first
    group=1     an attribute

What onnxruntime refuses to load or run is no case. `is_computed` says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import onnx

from npumake.engine.ort import OrtSession
from npumake.errors import PipelineError
from operators.case import Case, Constant, Mode, Shape, cases
from operators.cases import MODES

Resolved = Mapping[str, Constant]
COUNTS = re.compile(r"\b(group|blocksize|num_groups|hidden_size|size)=(\d+)")
LISTS = re.compile(r"\b(kernel_shape|strides|dilations)=\[([\d,]+)\]")


@cache
def ones() -> dict[str, Case]:
    """By name: behind a layer and between two LeakyRelu in turn. Of equal texts the first."""
    found: dict[str, Case] = {}
    for operator, modes in sorted(MODES.items()):
        for name, how in modes.items():
            for number, (what, changed) in enumerate(variants(how)):
                around = list(cases(operator, f"{name}; {what}", changed))
                case = around[number % len(around)]
                found.setdefault(case.digest, case)
    return {case.name: case for case in found.values()}


def is_computed(case: Case) -> bool:
    """Whether onnxruntime computes it, some value of it."""
    try:
        session = OrtSession(case.proto().SerializeToString())
        feeds = {port.name: np.ones(port.shape, np.float32) for port in session.inputs}
        (made,) = session.run(None, feeds)
    except (PipelineError, RuntimeError, onnx.parser.ParseError):
        return False
    return made.size > 0


def variants(how: Mode) -> Iterator[tuple[str, Mode]]:
    """What is one, and the mode of one shape that has it."""
    shape = how.shapes[-1]
    for what, smaller in _smaller(shape):
        if changed := _resolved(how, smaller):
            yield what, changed
    if whole := _resolved(how, shape):
        yield from _of_constants(whole, shape)
        yield from _of_inputs(whole)
        yield from _of_attributes(whole)


def _smaller(shape: Shape) -> Iterator[tuple[str, Shape]]:
    for axis, size in enumerate(shape):
        if size > 1:
            yield f"axis {axis}", (*shape[:axis], 1, *shape[axis + 1 :])
    yield "all axes", (1,) * len(shape)
    if len(shape) > 2:
        yield "all but the last axis", (*(1,) * (len(shape) - 1), shape[-1])
        yield "all but channels", (1, shape[1], *(1,) * (len(shape) - 2))


def _resolved(how: Mode, shape: Shape) -> Mode | None:
    """With values in the place of functions of the shape; None where these have none."""
    try:
        constants, fed = (
            {name: value(shape) if callable(value) else value for name, value in given.items()}
            for given in (how.constants, how.fed)
        )
    except (IndexError, ZeroDivisionError):
        return None
    return replace(how, shapes=(shape,), constants=constants, fed=fed)


def _of_constants(how: Mode, shape: Shape) -> Iterator[tuple[str, Mode]]:
    sizes = {n for value in how.constants.values() for n in _dims(value) if n > 1}
    for size in sorted(sizes):
        held = {name: _without(value, size) for name, value in how.constants.items()}
        yield f"size {size}", replace(how, constants=held)
    for name, value in how.constants.items():
        for what, spelled in _spellings(value, len(shape)):
            yield f"{name} {what}", replace(how, constants={**how.constants, name: spelled})


def _dims(value: Constant) -> Shape:
    return value if isinstance(value, tuple) else np.shape(np.array(value))


def _without(value: Constant, size: int) -> Constant:
    if isinstance(value, tuple):
        return tuple(1 if n == size else n for n in value)
    first = tuple(slice(1) if n == size else slice(None) for n in _dims(value))
    return np.array(value)[first].tolist()


def _spellings(value: Constant, rank: int) -> Iterator[tuple[str, Constant]]:
    dims = _dims(value)
    values = None if isinstance(value, tuple) else np.array(value)
    if values is None:
        for axis, size in enumerate(dims):
            if size > 1:
                yield f"axis {axis}", (*dims[:axis], 1, *dims[axis + 1 :])
    elif values.size > 1:
        yield "first", values.reshape(-1)[:1].tolist()
    for shape in {(), (1,), (1,) * rank, (1,) * (rank - 1)} - {dims}:
        first = 0.7 if values is None else values.reshape(-1)[0]
        yield f"{list(shape)}", np.full(shape, first).tolist()
    if values is None and len(dims) < rank:
        yield "in full rank", (*(1,) * (rank - len(dims)), *dims)


def _of_inputs(how: Mode) -> Iterator[tuple[str, Mode]]:
    for name, dims in how.fed.items():
        assert isinstance(dims, tuple)
        smaller = [
            (f"axis {axis}", (*dims[:axis], 1, *dims[axis + 1 :]))
            for axis, size in enumerate(dims)
            if size > 1
        ]
        for what, other in [*smaller, ("all axes", (1,) * len(dims)), ("[1]", (1,)), ("[]", ())]:
            if other != dims:
                yield f"{name} {what}", replace(how, fed={**how.fed, name: other})


def _of_attributes(how: Mode) -> Iterator[tuple[str, Mode]]:
    for found in COUNTS.finditer(how.body):
        if found[2] != "1":
            yield f"{found[1]}=1", replace(how, body=_replaced(how.body, found, f"{found[1]}=1"))
    for found in LISTS.finditer(how.body):
        for at, text in _each_one(found[2].split(",")):
            body = _replaced(how.body, found, f"{found[1]}=[{text}]")
            yield f"{found[1]} {at}", replace(how, body=body)


def _replaced(text: str, found: re.Match[str], by: str) -> str:
    return text[: found.start()] + by + text[found.end() :]


def _each_one(sizes: Sequence[str]) -> Iterator[tuple[str, str]]:
    for at, size in enumerate(sizes):
        if size != "1":
            yield f"axis {at}", ",".join([*sizes[:at], "1", *sizes[at + 1 :]])
    yield "all axes", ",".join("1" for _ in sizes)
