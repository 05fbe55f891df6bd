"""A model cut into segments: where, and what crosses from one to another."""

import math

import numpy as np
import onnx
import pytest

from npumake.engine.ort import OrtSession
from npumake.graph import parse_text
from npumake.graph.segments import segments

# Two ways that part and meet again: fewest tensors cross behind `b` and `f`.
TEXT = """a (float[6] x) => (float[6] b, float[6] d, float[6] e, float[6] g, float[6] h)
{ a = Neg(x)  b = Abs(a)  c = Exp(b)  d = Tanh(c)  e = Relu(b)  f = Add(d, e)  g = Mul(f, f)
  h = Sub(g, x) }"""
OUTPUTS = "bdegh"


def cut(most, together=(), text=TEXT):
    return segments(onnx.load_from_string(parse_text(text).to_bytes()), together, most)


def told(found):
    return [
        (" ".join(node.output[0] for node in s.model.graph.node), *("".join(x) for x in s[1:]))
        for s in found
    ]


def test_it_ends_where_the_fewest_tensors_cross():
    nodes, fed, handed, carried = zip(*told(cut(12)), strict=True)
    assert nodes == ("a b", "c d e f", "g h")
    assert fed == ("", "b", "f")
    assert handed == ("b", "de", "gh")
    assert carried == ("b", "f", "")


@pytest.mark.parametrize("most", [1, 6, 12, 18, 24, 30])
@pytest.mark.parametrize("together", [(), ("be",), ("dg", "eh"), ("bdegh",)])
def test_they_make_what_the_whole_makes(most, together):
    x = np.linspace(-2, 2, 6, dtype="f")
    whole = OrtSession(parse_text(TEXT).to_bytes())
    expected = dict(zip(whole.output_names, whole.run(None, {"x": x}), strict=True))
    made, known = {}, {"x": x}
    found = cut(most, together)
    for segment in found:
        types = {name: (array.dtype, array.shape) for name, array in known.items()}
        session = OrtSession(segment.to_bytes(types))
        feeds = {name: known[name] for name in session.input_names}
        answers = dict(zip(session.output_names, session.run(None, feeds), strict=True))
        assert set(answers) == {*segment.outputs, *segment.outgoing}
        known |= {name: answers[name] for name in segment.outgoing}
        made |= {name: answers[name] for name in segment.outputs}
    assert {name: a.tobytes() for name, a in made.items()} == {
        name: a.tobytes() for name, a in expected.items()
    }
    for group in together:
        assert sum(not set(group).isdisjoint(segment.outputs) for segment in found) == 1
    assert sum(len(segment.outputs) for segment in found) == len(OUTPUTS)


def test_no_segment_hands_out_nothing_and_none_more_than_it_may():
    """But for one tensor alone, or what lies before a place where it may end."""
    for most in range(1, 31):
        sizes = [6 * len(segment.outputs) for segment in cut(most)]
        assert min(sizes) > 0
        assert all(size <= max(most, math.ceil(most / 2) + 6) for size in sizes)


def test_weights_go_where_they_are_read():
    text = """a (float[2] x) => (float[2] y, float[2] z)
        <float[2] u = {1,2}, float[2] v = {3,4}, float[2] w = {5,6}>
        { y = Add(x, u)  p = Mul(y, v)  q = Mul(p, u)  z = Sub(q, w) }"""
    found = cut(1, text=text)
    assert [sorted(w.name for w in s.model.graph.initializer) for s in found] == [
        ["u"],
        ["u", "v", "w"],
    ]
