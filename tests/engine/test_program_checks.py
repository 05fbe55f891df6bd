"""Programs changed in one place: refused before a kernel runs, or computed. A kernel never fails.

Every kind of instruction is met, as the operators of `engine.operators` are lowered, and changed in
each attribute, constant and tensor.
"""

from __future__ import annotations

import itertools
import os
import random
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from engine.operators import CASES
from engine.test_every_operator import alone
from npumake.bundle.program import Instruction, Program, Tensor
from npumake.engine.exact import ExactSession
from npumake.engine.kinds import KINDS
from npumake.engine.lower import lowered
from npumake.engine.reference import KERNELS, ReferenceSession
from npumake.errors import GraphError
from npumake.graph import parse_text

FEWEST = 60  # mutants of one kind where CI takes a sample
NUMBERS = (-1, 0, 1, 7, 1 << 31, 1 << 62, None, "x", True, 1.5, [])
OTHERS = (*NUMBERS, [0], [-1], [1 << 40] * 4, [0, 0], {}, "reflect")
DTYPES = ("int8", "uint8", "int16", "int32", "int64", "float32", "float64", "bool")
SCALES = (None, 0.0, -1.0, float("nan"), float("inf"), 1e-320, 1e300, 0.3)
ZERO_POINTS = (1 << 40, -(1 << 40), 300, -129)
SHAPES = ((), (0,), (1,), (1 << 40,), (3, 5), (1, 1, 1, 1), (1, 2, 3, 4, 5))
TWICE = {"Add", "Gemm", "MatMul", "PRelu", "Resize"}


@pytest.fixture(scope="module")
def programs(chip, samples, quantized) -> dict[str, list[Program]]:
    """Programs of one instruction by its kind, with what it reads."""
    found: dict[str, dict[tuple[object, ...], Program]] = {}
    for op, cases in CASES.items():
        for text in cases.values():
            graph = parse_text(text)
            made = quantized(graph, samples(graph), chip())
            for rounding in ("half_even", *(("twice",) if op in TWICE else ())):
                for step, program in _steps(made, rounding):
                    form = (*step.attributes, *step.constants, len(step.inputs))
                    found.setdefault(step.op, {}).setdefault(form, program)
    softmax = replace(_of(found["softmax"]), op="softmax_twice")
    found["softmax_twice"] = {(): _with(found["softmax"], softmax)}
    count = {"count": np.array(4)}
    average = replace(_of(found["average_pool"]), op="average_twice", constants=count)
    found["average_twice"] = {(): _with(found["average_pool"], average)}
    return {op: list(forms.values()) for op, forms in found.items()}


def _steps(made, rounding: str) -> Iterator[tuple[Instruction, Program]]:
    try:
        program = lowered(made, rounding)
    except GraphError:  # no grid of TensorFlow Lite's
        return
    for step in program.instructions:
        if step.op == "onnx":
            continue
        yield step, program if step.op == "constant" else alone(program, step.name)


def _of(forms: dict[tuple[object, ...], Program]) -> Instruction:
    return next(iter(forms.values())).instructions[-1]


def _with(forms: dict[tuple[object, ...], Program], step: Instruction) -> Program:
    program = next(iter(forms.values()))
    return replace(program, instructions=(*program.instructions[:-1], step))


def mutants(program: Program) -> Iterator[Program]:
    *before, step = program.instructions
    for changed in _changed(step):
        yield replace(program, instructions=(*before, changed))
    for name in dict.fromkeys((*step.inputs, *step.outputs)):
        for tensor in _tensors(program.tensors[name]):
            yield replace(program, tensors={**program.tensors, name: tensor})


def _changed(step: Instruction) -> Iterator[Instruction]:
    for op in KERNELS:
        yield replace(step, op=op)
    for inputs in ((), step.inputs[:-1], step.inputs * 2, step.inputs[:1] * 3):
        yield replace(step, inputs=inputs)
    for name, value in step.attributes.items():
        rest = {key: kept for key, kept in step.attributes.items() if key != name}
        yield replace(step, attributes=rest)
        for other in _values(value):
            yield replace(step, attributes={**rest, name: other})
    for role, array in step.constants.items():
        rest = {key: kept for key, kept in step.constants.items() if key != role}
        yield replace(step, constants=rest)
        for other in _arrays(array):
            yield replace(step, constants={**rest, role: other})


def _values(value: object) -> Iterator[object]:
    yield from OTHERS
    if isinstance(value, list):
        yield from (value[:-1], value * 2, value[::-1], [value])
        for at in range(len(value)):
            for other in _values(value[at]) if isinstance(value[at], list) else NUMBERS:
                yield [*value[:at], other, *value[at + 1 :]]


def _arrays(array: np.ndarray) -> Iterator[np.ndarray]:
    yield from (array.astype(dtype) for dtype in DTYPES)
    yield from (array.reshape(-1), array[None], array[..., None], array.T, array.reshape(-1)[:0])
    yield from (array.reshape(-1)[:-1], np.concatenate([array.reshape(-1)] * 2))
    if array.dtype.kind in "iu":
        limits = np.iinfo(array.dtype)
        yield from (np.full_like(array, value) for value in (0, 1, limits.min, limits.max))
    else:
        yield from (np.full_like(array, value) for value in (0.0, np.nan, np.inf, -1e300))


def _tensors(tensor: Tensor) -> Iterator[Tensor]:
    yield from (replace(tensor, dtype=dtype) for dtype in DTYPES)
    yield from (replace(tensor, scale=scale) for scale in SCALES)
    yield from (replace(tensor, zero_point=zero) for zero in ZERO_POINTS)
    yield from (replace(tensor, shape=shape) for shape in SHAPES)
    yield replace(tensor, shape=tensor.shape[::-1])
    yield replace(tensor, shape=(*tensor.shape, 1))


def fed(program: Program, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    tensors = {name: program.tensors[name] for name in program.inputs}
    return {
        name: rng.integers(0, 127, tensor.shape).astype(tensor.dtype)
        for name, tensor in tensors.items()
    }


def outcome(program: Program, kind: type[ReferenceSession] | type[ExactSession]) -> str:
    try:
        session = kind(program)
        with np.errstate(all="ignore"):
            made = session.run(None, fed(program, 0))
    except GraphError:
        return "refused"
    for name, values in zip(program.outputs, made, strict=True):
        tensor = program.tensors[name]
        assert (values.shape, str(values.dtype)) == (tensor.shape, tensor.dtype)
    return "computed"


def test_every_kernel_is_a_kind():
    assert KERNELS.keys() == KINDS.keys()


def test_every_kind_is_met_and_computed_as_it_is_lowered(programs):
    assert programs.keys() == KERNELS.keys()
    for program in itertools.chain(*programs.values()):
        assert outcome(program, ReferenceSession) == outcome(program, ExactSession) == "computed"


@pytest.mark.parametrize("op", sorted(KERNELS))
def test_a_changed_instruction_is_refused_or_computed(op, programs):
    changed = [mutant for program in programs[op] for mutant in mutants(program)]
    sample = random.Random(op).sample(changed, min(FEWEST, len(changed)))
    for mutant in changed if os.environ.get("NPUMAKE_EVERY") else sample:
        assert outcome(mutant, ReferenceSession) == outcome(mutant, ExactSession)
