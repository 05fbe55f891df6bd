"""An epsilon that is less than a code is kept, and no division of codes is by zero."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from compilers.files import differences, made_of
from draws import drawn_pairs
from engine.operators import case
from npumake.engine.exact import ExactSession
from npumake.engine.lower import lowered
from npumake.engine.ort import OrtSession
from npumake.graph import parse_text, upgraded
from npumake.kernels.measure import cosine
from npumake.passes import optimized
from npumake.quant.qdq.insert import DEFAULT
from npumake.targets.reader import read_target
from quant.test_empty import built, outputs

SHAPE = (1, 4, 8)
SQUARE = "q = Mul({0}, {0})  "
POWER = "q = Pow({0}, two)  "
MEAN = "v = ReduceMean<axes=[-1]>(q)  ve = Add(v, eps)  "
ROOT = MEAN + "s = Sqrt(ve)  "
CENTRED = "mu = ReduceMean<axes=[-1]>(h)  c = Sub(h, mu)  "
QUOTIENTS = {
    "x / root": ROOT + "z = Div({0}, s)",
    "x * (1 / root)": ROOT + "r = Reciprocal(s)  z = Mul({0}, r)",
    "x * one / root": ROOT + "r = Div(one, s)  z = Mul({0}, r)",
    "x * variance ** -0.5": MEAN + "r = Pow(ve, less)  z = Mul({0}, r)",
    "gain first": ROOT + "r = Reciprocal(s)  m = Mul(r, gain)  z = Mul({0}, m)",
    "epsilon behind the root": "v = ReduceMean<axes=[-1]>(q)  s = Sqrt(v)  e = Add(s, eps)  "
    "z = Div({0}, e)",
    "a sum": "v = ReduceSum(q, last)  ve = Max(v, eps)  s = Sqrt(ve)  z = Div({0}, s)",
}
NORMS = {
    **{f"{name}, squared": SQUARE + body for name, body in QUOTIENTS.items()},
    "x / root, to the power": POWER + QUOTIENTS["x / root"],
    "L1": "q = Abs({0})  v = ReduceSum(q, last)  ve = Add(v, eps)  z = Div({0}, ve)",
    "L2": "l = ReduceL2<axes=[-1]>({0})  lc = Clip(l, eps)  z = Div({0}, lc)",
}


def norm(body, epsilon=1e-6, centered=False, tail="y = MatMul(z, w2)"):
    rng = np.random.default_rng(2)
    constants = {"w": rng.normal(size=(8, 8)) / 3, "w2": rng.normal(size=(8, 8)) / 3}
    constants |= {"eps": epsilon, "two": 2.0, "one": 1.0, "less": -0.5, "gain": [1.5] * 8}
    text = "h = MatMul(x, w)  " + (CENTRED if centered else "")
    text += body.format("c" if centered else "h") + "  " + tail
    words = set(text.replace("(", " ").replace(")", " ").replace(",", " ").split())
    read = {n: np.asarray(v, float).tolist() for n, v in constants.items() if n in words}
    read |= {"last": [-1]} if "last" in words else {}
    return optimized(upgraded(parse_text(case(text, opset=13, x=SHAPE, **read))))


def feeds_of(count=8):
    rng = np.random.default_rng(4)
    found = [{"x": rng.normal(size=SHAPE).astype(np.float32)} for _ in range(count)]
    for feed in found[::2]:
        feed["x"][0, 1] = 0.0
    return found


def runs_of(graph, feeds, name, asked=DEFAULT):
    """What the float model gives, the integers, and onnxruntime of the quantized file."""
    target = read_target(name)
    made = built(graph, feeds, target, asked)
    program = lowered(made, target.rounding, target.runnable)
    sessions = OrtSession(graph.to_bytes()), ExactSession(program), OrtSession(made.to_bytes())
    return [outputs(session, feeds) for session in sessions]


WAYS = list(product(("ara240", "rdk-x5", "onnx"), (1e-5, 1e-12), (False, True)))


@pytest.mark.parametrize(("body", "way"), drawn_pairs(NORMS, WAYS, 3))
def test_a_row_of_zeros_is_normalized_as_in_float(body, way):
    (name, epsilon, centered), feeds = way, feeds_of()
    meant, exact, by_ort = runs_of(norm(NORMS[body], epsilon, centered), feeds, name)
    assert np.isfinite(exact).all()
    assert cosine(meant, exact) > 0.99
    assert np.abs(exact - by_ort).max() <= np.ptp(meant) / 100
    rows = exact[::2, 0, 1]
    assert np.abs(rows - meant[::2, 0, 1]).max() <= np.ptp(meant) / 50


@pytest.mark.parametrize("body", [name for name in NORMS if name != "L2"])
def test_litert_gives_the_same_codes_of_a_row_of_zeros(body):
    compared, wrong = differences(made_of(norm(NORMS[body]), feeds_of()[0]))
    assert compared
    assert wrong == {}


def test_an_epsilon_of_many_codes_stays_on_the_chip():
    target = read_target("ara240")
    made = built(norm(NORMS["x / root, squared"], epsilon=0.5), feeds_of(), target)
    on_cpu = {step.op for step in lowered(made, target.rounding).instructions}
    assert {"mean", "add", "div"} <= on_cpu


ZEROS = "a = Mul(x, half)  b = Relu(x2)  "  # codes that are 0 where others are not


@pytest.mark.parametrize("name", ["ara240", "rdk-x5", "onnx"])
@pytest.mark.parametrize(
    "body",
    [
        ZEROS + "d = Add(b, half)  y = Div(a, d)",
        ZEROS + "s = Sub(b, half)  d = Add(s, small)  y = Div(a, d)",
        ZEROS + "d = Add(b, half)  r = Reciprocal(d)  y = Mul(a, r)",
    ],
)
def test_divided_by_a_code_of_zero_the_file_gives_what_the_integers_give(body, name):
    """Fed other samples than it was calibrated with."""
    constants = {"half": 0.5, "small": 0.003}
    read = {n: v for n, v in constants.items() if n in body}
    graph = upgraded(parse_text(case(body, x=SHAPE, x2=SHAPE, **read))).with_shapes()
    rng = np.random.default_rng(6)
    shown = [
        {n: np.abs(rng.normal(0, 40, SHAPE)).astype(np.float32) for n in ("x", "x2")}
        for _ in range(4)
    ]
    odd = {"x": np.zeros(SHAPE, np.float32), "x2": np.zeros(SHAPE, np.float32)}
    odd["x"][0, 0], odd["x"][0, 1] = 30.0, -30.0
    target = read_target(name)
    made = built(graph, shown, target)
    program = lowered(made, target.rounding, target.runnable)
    (exact,) = ExactSession(program).run(None, odd)
    (by_ort,) = OrtSession(made.to_bytes()).run(None, odd)
    assert np.isfinite(by_ort).all()
    assert np.array_equal(exact == 0, by_ort == 0)
    assert np.allclose(exact, by_ort, atol=np.abs(exact).max() / 100)
