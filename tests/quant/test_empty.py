"""A tensor that is always zero, and one that is tiny, have a scale that fits their neighbors."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest

from compilers.files import differences, made_of
from draws import drawn_pairs, label
from engine.operators import case
from npumake.engine.exact import ExactSession
from npumake.engine.lower import lowered
from npumake.engine.ort import OrtSession
from npumake.graph import array, parse_text, upgraded
from npumake.graph.qdq import DEQUANTIZE
from npumake.kernels.measure import cosine
from npumake.project.sections import Calibration, Quantization
from npumake.quant.calibration.observe import observe
from npumake.quant.qdq.insert import DEFAULT
from npumake.quant.search.methods import calibrated_with, ranges_by_method
from npumake.stages.quantized import quantized
from npumake.targets.reader import read_target

X = (1, 4, 5, 6)
DEAD = "c{0} = Conv(x, n{0})  {0} = Relu(c{0})"  # of what is fed, never negative, always zero
OPERANDS = {
    "live": "{0} = Conv(x, w{0})",
    "dead": DEAD,
    "tiny": "t{0} = Conv(x, w{0})  {0} = Mul(t{0}, small)",
    "zeros": "",
    "epsilons": "",
}
OPERATORS = {
    **{op: f"r = {op}(a, b)" for op in ("Add", "Mul", "Sub")},
    "Concat": "r = Concat<axis=1>(a, b)",
}
BEHIND = {
    "nothing": "y = Neg(r)",
    "a large factor": "y = Mul(r, large)",
    "a bias": "y = Conv(r, wide, bias)",
}
CONSTANTS = {"zeros": 0.0, "epsilons": 1e-5}
PAIRS = [
    pair
    for pair in itertools.product(("live", "dead", "tiny"), OPERANDS)
    if pair not in [("live", "live")]
]


def graph_of(left, right, operator, behind):
    made = [OPERANDS[left].format("a"), OPERANDS[right].format("b")]
    channels = 8 if operator == "Concat" else 4
    body = "  ".join([*made, OPERATORS[operator], BEHIND[behind]])
    rng = np.random.default_rng(3)
    weights = {name: rng.normal(size=(4, 4, 1, 1)) for name in ("wa", "wb", "na", "nb")}
    weights |= {name: -np.abs(weights[name]) for name in ("na", "nb")}
    constants = {name: values.round(3).tolist() for name, values in weights.items()}
    constants |= {"small": 1e-9, "large": 1e5, "bias": [0.01, -0.02, 0.03, 0.004]}
    constants["wide"] = rng.normal(size=(4, channels, 1, 1)).round(3).tolist()
    if right in CONSTANTS:
        constants["b"] = np.full(X, CONSTANTS[right]).tolist()
    read = {name: values for name, values in constants.items() if name in re.split(r"\W+", body)}
    return upgraded(parse_text(case(body, x=X, **read))).with_shapes()


def feeds_of():
    rng = np.random.default_rng(0)
    return [{"x": np.abs(rng.normal(size=X)).astype(np.float32)} for _ in range(4)]


def built(graph, feeds, target, asked=DEFAULT, method="max"):
    recipe = ranges_by_method(
        graph, observe(graph, feeds), Calibration(method), target.activations.symmetric
    )
    return quantized(calibrated_with(graph, recipe, target, asked), target)


def outputs(session, feeds):
    return np.stack([session.run(None, feed)[0] for feed in feeds])


@pytest.mark.parametrize(
    ("sums", "place"),
    drawn_pairs(
        list(itertools.product(PAIRS, OPERATORS)),
        list(itertools.product(BEHIND, ["ara240", "rdk-x5"])),
    ),
    ids=label,
)
def test_the_integers_are_as_close_as_eight_bits_allow(sums, place):
    ((left, right), operator), (behind, name) = sums, place
    graph, feeds, target = graph_of(left, right, operator, behind), feeds_of(), read_target(name)
    program = lowered(built(graph, feeds, target), target.rounding, target.runnable)
    meant = outputs(OrtSession(graph.to_bytes()), feeds)
    assert cosine(meant, outputs(ExactSession(program), feeds)) > 0.99


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize(("left", "right"), PAIRS)
def test_litert_runs_the_file_and_gives_the_same_codes(left, right, operator):
    graph = graph_of(left, right, operator, "a large factor")
    made = made_of(graph, feeds_of()[0])
    compared, wrong = differences(made)
    assert compared
    assert wrong == {}


@pytest.mark.parametrize("types", ["int8", "int16"])
def test_no_scale_is_made_up_for_a_tensor_of_zeros(types):
    graph, target = graph_of("dead", "epsilons", "Add", "nothing"), read_target("ara240")
    made = built(graph, feeds_of(), target, Quantization({"*": types}))
    scales = [float(array(node.inputs[1]).max()) for node in made.nodes(DEQUANTIZE)]
    assert 1.0 not in scales


def test_a_bias_behind_a_tensor_of_zeros_keeps_its_digits():
    graph, target = graph_of("dead", "zeros", "Add", "a bias"), read_target("ara240")
    program = lowered(built(graph, feeds_of(), target), target.rounding)
    (made,) = ExactSession(program).run(None, feeds_of()[0])
    assert np.allclose(made[0, :, 0, 0], [0.01, -0.02, 0.03, 0.004], atol=3e-4)
