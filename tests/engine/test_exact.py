"""The fast engine is the reference engine, bit for bit."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from draws import drawn_pairs, label
from engine.operators import CASES
from npumake.bundle.program import Instruction, Program, Tensor
from npumake.engine.exact import MAX_POOLS, MAX_STEPS, ExactSession
from npumake.engine.lower import lowered
from npumake.engine.reference import KERNELS, ReferenceSession
from npumake.engine.translate import TRANSLATIONS
from npumake.errors import GraphError
from npumake.graph import parse_text
from npumake.kernels.rounding import fixed_point, fixed_point_common

IDS = [(op, name) for op, cases in CASES.items() for name in cases]
SCHEMES = {
    "symmetric": ("half_even", "int8", True),
    "asymmetric": ("half_up", "int8", False),
    "unsigned": ("half_away", "uint8", False),
}
ROUNDINGS = ("half_even", "half_up", "half_away")
TWICE = "twice"  # rounds two times, which no float engine translates
CODES = np.arange(-128, 128, dtype=np.int8)[None]


def program(op, constants, attributes=None, low=-128, high=127, rounding="half_even"):
    """One instruction from 256 int8 codes to as many."""
    given = {"low": low, "high": high, "rounding": rounding, **(attributes or {})}
    grid = Tensor((1, 256), "int8", 1.0, 0)
    step = Instruction(op, op, ("x",), ("y",), constants, given)
    return Program(("x",), ("y",), {"x": grid, "y": grid}, (step,))


def factor(real):
    found = fixed_point(real)
    return {"mantissa": found.mantissa, "shift": found.shift}


def same(given, feeds):
    """The answers alone, and with every tensor inside."""
    made = [name for step in given.instructions for name in step.outputs]
    exact = ReferenceSession(given)
    for fast, names in ((ExactSession(given), None), (ExactSession(given, watched=made), made)):
        alike(fast.run(names, feeds), exact.run(names, feeds))


def alike(fast, exact):
    for ours, theirs in zip(fast, exact, strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(("case", "scheme"), drawn_pairs(IDS, list(SCHEMES)), ids=label)
def test_every_operator_is_the_reference_bit_for_bit(case, scheme, chip, samples, quantized):
    op, name = case
    graph = parse_text(CASES[op][name])
    feeds, (rounding, *grids) = samples(graph), SCHEMES[scheme]
    same(lowered(quantized(graph, feeds, chip(*grids)), rounding), feeds[0])


def test_every_translation_is_of_an_instruction():
    assert TRANSLATIONS.keys() <= KERNELS.keys()


@pytest.mark.parametrize("op", ["Add", "Mul"])
def test_a_constant_operand_does_not_cut_a_session(op, chip, samples, quantized):
    body = "".join(f"t{n + 1} = {op}(t{n}, c) " for n in range(1, 8))
    graph = parse_text(
        "a (float[1,4] x) => (float[1,4] y) <float[1] c = {0.75}> "
        f"{{ t1 = {op}(x, c) {body} y = {op}(t8, c) }}"
    )
    feeds = samples(graph)
    lowered_program = lowered(quantized(graph, feeds, chip()), "half_even")
    assert any(step.op == "constant" for step in lowered_program.instructions)
    assert all(ExactSession(lowered_program).in_floats)
    same(lowered_program, feeds[0])


@pytest.mark.slow
def test_a_program_of_more_tensors_than_one_session_holds_is_the_reference():
    """Each sum reads the two tensors before it, also those of the session before."""
    step = program("rescale", factor(0.9)).instructions[0]
    names = ["x", *(f"t{number}" for number in range(2 * MAX_STEPS + 9))]
    common = fixed_point_common(np.array([1.0, -0.5]))
    both = {"mantissa": common.mantissa, "shift": common.shift}
    steps = [replace(step, name="t0", inputs=("x",), outputs=("t0",))]
    for first, second, end in zip(names, names[1:], names[2:], strict=False):
        added = program("add", both).instructions[0]
        steps.append(replace(added, name=end, inputs=(first, second), outputs=(end,)))
    grids = dict.fromkeys(names, Tensor((1, 256), "int8", 1.0, 0))
    same(Program(("x",), (names[-1],), grids, tuple(steps)), {"x": CODES})


@pytest.mark.skipif(sys.platform != "linux", reason="counts the threads in /proc")
def test_a_chain_of_many_sessions_starts_no_thread_for_each():
    """PRelu has no translation, so each rescaling between two of them is a session."""
    grid = Tensor((1, 256), "int8", 1.0, 0)
    names = ["x", *(f"t{number}" for number in range(4 * MAX_POOLS))]
    slopes = factor(1.0) | {f"negative_{role}": value for role, value in factor(0.5).items()}
    both = [
        program(*kind).instructions[0] for kind in (("rescale", factor(1.0)), ("prelu", slopes))
    ]
    steps = [
        replace(both[number % 2], name=end, inputs=(start,), outputs=(end,))
        for number, (start, end) in enumerate(pairwise(names))
    ]
    chain = Program(("x",), (names[-1],), dict.fromkeys(names, grid), tuple(steps))
    before = len(os.listdir("/proc/self/task"))
    session = ExactSession(chain, at_once=2)
    assert sum(session.in_floats) == 2 * MAX_POOLS
    assert len(os.listdir("/proc/self/task")) < before + MAX_POOLS
    alike(session.run(None, {"x": CODES}), ReferenceSession(chain).run(None, {"x": CODES}))


@pytest.mark.parametrize("rounding", [*ROUNDINGS, TWICE])
@pytest.mark.parametrize("real", [1.0, 0.5, 0.25, 1.5, 2.0, 0.007, 1 / 3, -0.5, 2.0**-20, 0.0])
def test_every_code_is_rescaled_exactly_ties_included(real, rounding):
    same(program("rescale", factor(real), rounding=rounding), {"x": CODES})


@pytest.mark.parametrize("rounding", [*ROUNDINGS, TWICE])
@pytest.mark.parametrize("bias", [0, 1 << 24, (1 << 24) + 1, 1 << 30])
def test_a_bias_beyond_float32_is_added_exactly(bias, rounding):
    weight = np.eye(256, dtype=np.int8) * 3
    around = np.linspace(-bias, bias, 256).round().astype(np.int32)
    constants = {"weight": weight, "bias": around, **factor(np.full(256, 90 / (bias + 381)))}
    same(program("matmul", constants, rounding=rounding), {"x": CODES})


@pytest.mark.parametrize("rounding", [*ROUNDINGS, TWICE])
def test_a_channel_whose_weights_are_next_to_nothing_is_its_bias_exactly(rounding):
    """Shifts of 50 to 60 with biases of 2**30: more bits than a float64 has."""
    rng = np.random.default_rng(0)
    bias = rng.integers(-(1 << 30), 1 << 30, 256).astype(np.int32)
    factors = factor(rng.uniform(90, 150, 256) * 2.0 ** -rng.integers(22, 31, 256))
    constants = {"weight": np.eye(256, dtype=np.int8), "bias": bias, **factors}
    made = program("matmul", constants, rounding=rounding)
    same(made, {"x": CODES})
    assert ExactSession(made).in_floats == (rounding != TWICE,)


WIDE = ("int16", "uint16")


def wide(op, shape, constants, rounding, dtype="int16", attributes=None):
    """One instruction on random 16-bit codes, both ends among them, which keeps the shape."""
    limits = np.iinfo(dtype)
    zero = (int(limits.max) + int(limits.min) + 1) // 2
    given = {"low": int(limits.min), "high": int(limits.max), "rounding": rounding}
    step = Instruction(op, op, ("x",), ("y",), constants, {**given, **(attributes or {})})
    made = Program(("x",), ("y",), dict.fromkeys("xy", Tensor(shape, dtype, 1.0, zero)), (step,))
    codes = np.random.default_rng(0).integers(limits.min, limits.max + 1, shape).astype(dtype)
    codes.flat[:2] = limits.min, limits.max
    return made, {"x": codes}


def plain_conv(group):
    return {"pads": [1, 1, 1, 1], "strides": [1, 1], "dilations": [1, 1], "group": group}


@pytest.mark.parametrize("rounding", [*ROUNDINGS, TWICE])
@pytest.mark.parametrize("dtype", WIDE)
@pytest.mark.parametrize("group", [1, 64])
@pytest.mark.parametrize("bias", [None, 1 << 20, 1 << 30])
def test_a_convolution_of_16_bits_is_exact_in_two_digits(bias, group, dtype, rounding):
    rng = np.random.default_rng(1)
    weight = rng.integers(-127, 128, (64, 64 // group, 3, 3)).astype(np.int8)
    constants = {"weight": weight, **factor(rng.uniform(0.5, 2, 64) * 2.0**-14 / (64 // group))}
    if bias is not None:
        constants["bias"] = rng.integers(-bias, bias, 64).astype(np.int32)
    made, feeds = wide("conv", (1, 64, 6, 6), constants, rounding, dtype, plain_conv(group))
    same(made, feeds)
    assert ExactSession(made).in_floats == (rounding != TWICE,)


@pytest.mark.parametrize("rounding", [*ROUNDINGS, TWICE])
@pytest.mark.parametrize("real", [2.0**-16, 2.0**-17, 3 * 2.0**-18, 2.0**-16 / 3, -(2.0**-17)])
def test_a_sum_halfway_between_two_16_bit_codes_follows_the_rule(real, rounding):
    weight = np.eye(256, dtype=np.int16) * 255
    weight[0] = 127
    made, feeds = wide("matmul", (64, 256), {"weight": weight, **factor(real)}, rounding)
    feeds["x"][:, 1:] = (feeds["x"][:, 1:] >> 6) << 6
    same(made, feeds)


@pytest.mark.parametrize("dtype", WIDE)
def test_a_product_that_float32_does_not_hold_is_exact_in_float64(dtype):
    weight = np.random.default_rng(2).integers(-(1 << 15), 1 << 15, (32, 32)).astype(np.int16)
    made, feeds = wide(
        "matmul", (4, 32), {"weight": weight, **factor(2.0**-19)}, "half_even", dtype
    )
    same(made, feeds)
    assert ExactSession(made).in_floats == (True,)


def test_a_convolution_by_16_bit_weights_is_left_to_the_reference():
    weight = np.full((8, 8, 3, 3), 1 << 14, np.int16)
    constants = {"weight": weight, **factor(2.0**-20)}
    made, feeds = wide("conv", (1, 8, 6, 6), constants, "half_even", "int16", plain_conv(1))
    same(made, feeds)
    assert ExactSession(made).in_floats == (False,)


@pytest.mark.parametrize(
    ("op", "shape", "weight"),
    [("conv", (1, 64, 6, 6), (64, 64, 3, 3)), ("matmul", (4, 64), (64, 64))],
)
def test_int32_sums_beyond_float32_are_left_to_the_reference(op, shape, weight):
    constants = {"weight": np.full(weight, 127, np.int8), **factor(1.0)}
    made, feeds = wide(op, shape, constants, "half_even", attributes=plain_conv(1))
    (step,) = made.instructions
    limits = np.iinfo(np.int32)
    free = replace(step, attributes={**step.attributes, "low": limits.min, "high": limits.max})
    tensors = {**made.tensors, "y": Tensor(shape, "int32", 1.0, 0)}
    made = replace(made, tensors=tensors, instructions=(free,))
    same(made, feeds)
    assert ExactSession(made).in_floats == (False,)


def test_int32_sums_that_float32_does_not_hold_are_moved_exactly():
    limits = np.iinfo(np.int32)
    given = {"low": limits.min, "high": limits.max, "rounding": "half_even", "perm": [1, 0]}
    step = Instruction("transpose", "move", ("x",), ("y",), factor(1.0), given)
    tensors = {"x": Tensor((1, 4), "int32", 1.0, 0), "y": Tensor((4, 1), "int32", 1.0, 0)}
    sums = np.array([[(1 << 24) + 1, 3, -(1 << 30) - 1, limits.max]], np.int32)
    same(Program(("x",), ("y",), tensors, (step,)), {"x": sums})


@pytest.mark.parametrize("name", ["steps", "zero_point", "y/Cast", "y/Mul", "y/constant", "moved"])
def test_a_tensor_called_as_one_that_the_translation_makes_is_itself(name):
    grid, limits = Tensor((1, 256), "int8", 1.0, 3), {"low": -128, "high": 127}
    halved = {**limits, "rounding": "half_even"}
    both = {"mantissa": np.array([1 << 30] * 2), "shift": np.array(31)}
    steps = (
        Instruction("rescale", "first", ("x",), ("y",), factor(0.5), halved),
        Instruction("add", "last", ("y", name), ("z",), both, halved),
    )
    tensors = dict.fromkeys(("x", name, "y", "z"), grid)
    made = Program(("x", name), ("z",), tensors, steps)
    same(made, {"x": CODES, name: CODES[:, ::-1]})
    assert ExactSession(made).in_floats == (True, True)


def test_a_tensor_inside_is_given_too(chip, samples, quantized):
    graph = parse_text(CASES["Conv"][next(iter(CASES["Conv"]))])
    made = lowered(quantized(graph, feeds := samples(graph), chip()), "half_even")
    inside = made.instructions[0].outputs[0]
    (codes,) = ExactSession(made).run([inside], feeds[0])
    np.testing.assert_array_equal(codes, ReferenceSession(made).run([inside], feeds[0])[0])


@pytest.mark.parametrize("engine", [ExactSession, ReferenceSession])
def test_not_a_number_is_refused_and_infinity_saturates(engine, chip, samples, quantized):
    graph = parse_text(CASES["Neg"][next(iter(CASES["Neg"]))])
    feeds = samples(graph)
    made = lowered(quantized(graph, feeds, chip()), "half_even")
    (name,) = feeds[0]
    assert engine(made).run(None, {name: np.full_like(feeds[0][name], np.inf)})
    with pytest.raises(GraphError, match="NaN"):
        engine(made).run(None, {name: np.full_like(feeds[0][name], np.nan)})
