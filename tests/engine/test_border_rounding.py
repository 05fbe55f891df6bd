"""A real number between two codes: to the even one as in ONNX, or away from zero as std::round."""

import numpy as np
import pytest

from npumake.engine.exact import ExactSession
from npumake.engine.lower import lowered
from npumake.engine.ort import OrtSession
from npumake.engine.reference import ReferenceSession
from npumake.graph import parse_text, round_border, upgraded
from npumake.stages.quantized import quantized
from npumake.targets.reader import read_target, target_names

TEXT = """a (float[1,8] x) => (float[1,8] y) <float s = {0.5}, int8 z = {ZERO}> {
    q = QuantizeLinear(x, s, z)  y = DequantizeLinear(q, s, z) }"""
TIES = np.float32([[-1.25, -0.75, -0.25, 0.25, 0.75, 1.25, 0.24999999, -0.24999999]])
VENDORS = ("D-Robotics", "Horizon")


def std_round(steps):
    """As C++ rounds, one number after the other."""
    return [int(abs(s) + 0.5) * (1 if s > 0 else -1) for s in steps.ravel().astype(float).tolist()]


def graph(zero=0):
    return upgraded(parse_text(TEXT.replace("ZERO", str(zero)))).with_shapes()


@pytest.mark.parametrize("session", [ReferenceSession, ExactSession])
@pytest.mark.parametrize("zero", [0, -3, 7])
def test_a_tie_goes_away_from_zero_where_the_graph_says_so(session, zero):
    model = graph(zero)
    round_border(model, "half_away")
    (made,) = session(lowered(model, "half_even")).run(None, {"x": TIES})
    assert (made / 0.5).ravel().tolist() == std_round(TIES / 0.5)


@pytest.mark.parametrize("session", [ReferenceSession, ExactSession])
def test_a_tie_goes_to_the_even_code_where_it_says_nothing(session):
    (made,) = session(lowered(graph(), "half_even")).run(None, {"x": TIES})
    (wanted,) = OrtSession(graph().to_bytes()).run(None, {"x": TIES})
    assert made.tolist() == wanted.tolist()


@pytest.mark.parametrize("value", [np.inf, -np.inf, 1e30, -1e30, 0.0])
def test_what_is_beyond_the_grid_saturates_either_way(value):
    feed = {"x": np.full((1, 8), value, np.float32)}
    model = graph()
    plain = lowered(model, "half_even")
    round_border(model, "half_away")
    away = lowered(model, "half_even")
    for session in (ReferenceSession, ExactSession):
        (a,), (b,) = (session(program).run(None, feed) for program in (plain, away))
        assert a.tolist() == b.tolist()


@pytest.mark.parametrize("name", target_names())
def test_the_program_of_a_target_rounds_as_its_vendor_s_runtime(name):
    target = read_target(name)
    program = lowered(quantized(graph(), target), "half_even")
    (step,) = [step for step in program.instructions if step.op == "quantize"]
    wanted = "half_away" if target.vendor in VENDORS else None
    assert step.attributes.get("rounding") == wanted
