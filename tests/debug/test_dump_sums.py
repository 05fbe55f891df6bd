"""Causes behind a clamp, in weights and operands, in moved runs and in curves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from debug.test_dump_causes import IMAGE, IMAGES, evidence, first, fitted, tensor
from npumake.bundle.program import Instruction, Program, Tensor
from npumake.debug.dumps.causes import causes
from npumake.debug.dumps.compare import _nearest
from npumake.debug.dumps.evidence import Evidence
from npumake.debug.dumps.last_node import LastNode
from npumake.debug.dumps.reading import CODES, DumpReading
from npumake.engine.reference import ReferenceSession

READ, GIVEN = (1, 6, 16, 18), (1, 12, 16, 18)
WINDOW = {"kernel": [3, 3], "strides": [1, 1], "dilations": [1, 1], "pads": [1, 1, 1, 1]}


def relu(dtype: str = "int8", low: int | None = None) -> LastNode:
    """A convolution with a Relu: more than a third of the result is the clamp."""
    rng = np.random.default_rng(3)
    limits = np.iinfo(dtype)
    zero = limits.min if dtype == "int8" else 0
    x = rng.integers(-100, 100, READ).astype(dtype)
    mantissa = (rng.uniform(0.6, 1.0, 12) * (1 << 30)).astype(np.int64)
    constants = {
        "weight": rng.integers(-90, 90, (12, 6, 3, 3)).astype(np.int8),
        "bias": rng.integers(-20000, 30000, 12).astype(np.int32),
        "mantissa": mantissa,
        "shift": np.full(12, 39 if dtype == "int8" else 35),
    }
    attributes = {**WINDOW, "group": 1, "rounding": "half_even"}
    attributes |= {"low": zero if low is None else low, "high": int(limits.max)}
    step = Instruction("conv", "layer", ("x",), ("y",), constants, attributes)
    tensors = {"x": Tensor(READ, dtype, 0.02, 3), "y": Tensor(GIVEN, dtype, 0.05, zero)}
    return LastNode(step, Program(("x",), ("y",), tensors, (step,)), {"x": x})


def result(node: LastNode, **constants: np.ndarray) -> np.ndarray:
    other = replace(node.step, constants={**node.step.constants, **constants})
    program = replace(node.program, instructions=(other,))
    return ReferenceSession(program).run(["y"], dict(node.values))[0]


def seen(node: LastNode, theirs: np.ndarray) -> Evidence:
    reading = DumpReading(theirs.astype(np.float64), (0, 1, 2, 3), CODES, theirs)
    grid = node.program.tensors["y"]
    ours = result(node).astype(np.float64)
    return Evidence(ours, reading, grid, node.step, last_node=lambda: node)


@pytest.fixture(params=["int8", "int16"])
def node(request):
    return relu(request.param)


def test_unclamped_sums_round_to_the_codes(node):
    sums = node.unclamped
    low, high = (node.step.attributes[name] for name in ("low", "high"))
    assert np.abs(np.clip(sums, low, high) - result(node)).max() <= 0.51
    assert (sums < low - 1).mean() > 0.2


@pytest.mark.parametrize("moved", [-3, 5, "permuted"])
def test_another_bias_behind_a_relu(node, moved):
    bias = node.step.constants["bias"]
    by = np.roll(bias, 5) if moved == "permuted" else bias + moved * 1500
    assert first(seen(node, result(node, bias=by.astype(np.int32)))).kind == "bias"


@pytest.mark.parametrize("factor", [0.6, 1.7])
def test_another_factor_behind_a_relu(node, factor):
    mantissa = (node.step.constants["mantissa"] * factor / 2).astype(np.int64)
    shift = node.step.constants["shift"] - 1
    cause = first(seen(node, result(node, mantissa=mantissa, shift=shift)))
    assert cause.kind == "scale"
    assert cause.figures["factor"] == pytest.approx(factor, rel=0.02)


def test_the_other_sign_behind_a_relu(node):
    negated = {role: -node.step.constants[role] for role in ("weight", "bias")}
    assert first(seen(node, result(node, **negated))).kind == "sign"


@pytest.mark.parametrize("rule", [np.floor, np.ceil])
def test_sums_rounded_by_another_rule(node, rule):
    grid, low, high = node.program.tensors["y"], *(node.step.attributes[n] for n in ("low", "high"))
    theirs = np.clip(rule(node.unclamped), low, high).astype(grid.dtype)
    assert first(seen(node, theirs)).kind == "rounding"


def test_three_times_the_sums_wrap_around_before_the_relu():
    node = relu("int8", low=-128)
    zero = node.program.tensors["y"].zero_point
    wrapped = (np.rint(3 * (node.unclamped - zero)) + zero).astype(np.int64).astype(np.int8)
    cause = first(seen(node, wrapped))
    assert cause.kind == "overflow"
    assert cause.figures["factor"] == pytest.approx(3, abs=0.1)


@pytest.mark.parametrize("change", ["noise", "half lost"])
def test_other_weights_are_found_by_a_fit(change):
    node = relu("int16", low=-32768)
    weight = node.step.constants["weight"].copy()
    if change == "noise":
        weight += np.random.default_rng(5).integers(-20, 20, weight.shape).astype(np.int8)
    else:
        weight[:, 3:] = 0
    cause = first(seen(node, result(node, weight=weight)))
    assert cause.kind == "weights"
    assert cause.figures["changed"] > 0


def test_noise_is_not_called_other_weights(node):
    rng = np.random.default_rng(5)
    limits = np.iinfo(node.program.tensors["y"].dtype)
    theirs = rng.integers(limits.min, limits.max, GIVEN).astype(limits.dtype)
    assert causes(seen(node, theirs)) == ()


def test_an_operand_that_counts_twice():
    rng = np.random.default_rng(2)
    reads = {name: rng.integers(-90, 90, IMAGE).astype(np.int8) for name in "ab"}
    constants = {"mantissa": np.array([1 << 28, 1 << 29]), "shift": np.array(30)}
    attributes = {"low": -128, "high": 127, "rounding": "half_even"}
    step = Instruction("add", "sum", ("a", "b"), ("y",), constants, attributes)
    tensors = {name: Tensor(IMAGE, "int8", 0.05, 0) for name in "aby"}
    node = LastNode(step, Program(("a", "b"), ("y",), tensors, (step,)), reads)
    twice = {"mantissa": np.array([1 << 29, 1 << 29])}
    cause = first(seen(node, result(node, **twice)))
    assert cause.kind == "operands"
    assert cause.figures["ratios"] == pytest.approx([2.0, 1.0], abs=0.05)


TILES = {
    "exchanged tiles": lambda x: np.concatenate([x[:, :, 6:], x[:, :, :6]], 2),
    "fields": lambda x: np.concatenate([x[:, :, ::2], x[:, :, 1::2]], 2),
}


@pytest.mark.parametrize("case", IMAGES)
@pytest.mark.parametrize("way", TILES)
def test_lines_at_other_places(case, way):
    ours = tensor(case[0], *case[1])
    kinds = {"exchanged tiles": {"shift", "padding", "layout"}}
    cause = first(evidence(ours, TILES[way](ours), case))
    assert cause.kind in kinds.get(way, {"layout"})


@pytest.mark.parametrize("case", IMAGES)
def test_tiles_one_behind_the_other_are_a_layout(case):
    ours = tensor((1, 16, 16, 16), *case[1])
    tiles = ours.reshape(1, 16, 4, 4, 4, 4).swapaxes(3, 4).reshape(ours.shape)
    assert first(evidence(ours, tiles, ((1, 16, 16, 16), case[1]))).kind == "layout"


@pytest.mark.parametrize("case", IMAGES)
def test_a_gamma_is_a_curve(case):
    shape, (dtype, zero) = case
    ours = tensor(shape, dtype, zero)
    reach = np.abs(ours - zero).max()
    bent = np.sign(ours - zero) * (np.abs(ours - zero) / reach) ** 0.45 * reach + zero
    assert first(evidence(ours, fitted(bent, dtype), case)).kind == "curve"


@pytest.mark.parametrize("case", IMAGES)
def test_channels_that_were_not_written(case):
    ours = tensor(case[0], *case[1])
    theirs = ours.copy()
    theirs[:, 1::4] = 7
    cause = first(evidence(ours, theirs, case))
    assert cause.kind == "uninitialized"
    assert cause.figures["lines"][:3] == [1, 5, 9]


@pytest.mark.parametrize("case", IMAGES)
def test_a_border_that_differs_is_a_padding(case):
    ours, rng = tensor(case[0], *case[1]), np.random.default_rng(1)
    theirs = fitted(ours + rng.normal(0, 20, ours.shape), case[1][0])
    theirs[:, :, 1:-1, 1:-1] = ours[:, :, 1:-1, 1:-1]
    assert first(evidence(ours, theirs, case)).kind == "padding"


def test_a_reading_in_which_most_differs_is_no_reading():
    """A cube of values can be read in every order of its axes."""
    case = ((1, 16, 16, 16), ("int16", 0))
    ours, rng = tensor(*case[:1], *case[1]), np.random.default_rng(0)
    theirs = ours.copy()
    theirs[:, 3] = rng.permutation(ours[:, 3].ravel()).reshape(ours[:, 3].shape)
    right, other = (
        DumpReading(x, (0, 1, 2, 3), CODES, x) for x in (theirs, theirs.transpose(0, 1, 3, 2))
    )
    assert _nearest([other, right], ours) == [right]
    assert _nearest([other], ours) == [other]
