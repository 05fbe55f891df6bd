"""The fast engine is the reference engine, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

from engine.operators import CASES
from npumake.bundle.program import Instruction, Program, Tensor
from npumake.engine.exact import ExactSession
from npumake.engine.lower import lowered
from npumake.engine.reference import KERNELS, ReferenceSession
from npumake.engine.translate import TRANSLATIONS
from npumake.errors import GraphError
from npumake.graph import parse_text
from npumake.kernels.rounding import fixed_point

IDS = [(op, name) for op, cases in CASES.items() for name in cases]
SCHEMES = [("int8", True), ("int8", False), ("uint8", False)]
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


@pytest.mark.parametrize(("op", "name"), IDS, ids=[f"{o}: {n}" for o, n in IDS])
def test_every_operator_is_the_reference_bit_for_bit(op, name, chip, samples, quantized):
    graph = parse_text(CASES[op][name])
    feeds = samples(graph)
    for index, scheme in enumerate(SCHEMES):
        made = quantized(graph, feeds, chip(*scheme))
        same(lowered(made, ROUNDINGS[index]), feeds[0])


def test_every_translation_is_of_an_instruction():
    assert TRANSLATIONS.keys() <= KERNELS.keys()


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


def test_a_sum_that_float32_does_not_hold_is_left_to_the_reference():
    weight = np.full((256, 256), 127, np.int16) * 40
    session = ExactSession(made := program("matmul", {"weight": weight, **factor(2.0**-22)}))
    same(made, {"x": CODES})
    assert session.in_floats == (False,)


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
