"""What a stranger's CPU subgraph may not ask for: other tensors, sizes nobody knows, no end."""

import numpy as np
import pytest

from npumake.bundle.program import Instruction, Program, Tensor
from npumake.engine.untrusted_limits import refuse_unbounded
from npumake.errors import GraphError
from npumake.graph import parse_text

LOOP = """(float[4] x) => (float[4] y) <int64 n = {TURNS}, bool go = {1}> {
    y = Loop(n, go, x) <body = b (int64 i, bool c, float[4] a) => (bool d, float[4] e)
        { d = Identity(c)  e = Neg(a) }> }"""


def program(text: str, **tensors: Tensor) -> Program:
    """One CPU subgraph that reads x and, where it is described, n, and makes y."""
    model = np.frombuffer(parse_text("agraph " + text).to_bytes(), np.uint8)
    described = {"x": Tensor((4,), "float32"), "y": Tensor((4,), "float32")} | tensors
    fed = tuple(name for name in described if name != "y")
    step = Instruction("onnx", "cpu", fed, ("y",), {"model": model})
    return Program(fed, ("y",), described, (step,))


@pytest.mark.parametrize(
    "text",
    [
        "(float[4] x) => (float[4] y) { y = Neg(x) }",
        "(float[4] x) => (float[4] y) <int64[1] n = {4}> { y = Expand(x, n) }",
        LOOP.replace("TURNS", "65536"),
    ],
)
def test_what_is_bounded_is_taken(text):
    refuse_unbounded(program(text))


@pytest.mark.parametrize(
    ("text", "tensors", "what"),
    [
        ("(float[5] x) => (float[5] y) { y = Neg(x) }", {}, "the CPU model reads x: float32"),
        ("(float[4] x) => (float[4] z) { z = Neg(x) }", {}, "the CPU model makes z: float32"),
        (
            "(float[4] x) => (double[4] y) { y = Cast<to = 11>(x) }",
            {},
            r"makes y: float64\[4\], the program declares y: float32\[4\]",
        ),
        (
            "(float[4] x, int64[1] n) => (float[4] y) <float[1] w = {1}> "
            "{ z = Expand(w, n)  s = ReduceSum(z)  y = Add(x, s) }",
            {"n": Tensor((1,), "int64")},
            "the shape of `z` is unknown",
        ),
        (
            "(float[4] x) => (float[4] y) <int64[1] n = {100000000000}, float[1] w = {1}> "
            "{ z = Expand(w, n)  s = ReduceSum(z)  y = Add(x, s) }",
            {},
            "more than the 1,073,741,824 elements",
        ),
        (
            "(float[4] x) => (float[4] y) <int64[1] n = {1000000000}, float[1] w = {1}> "
            "{ z = Expand(w, n)  s = Neg(z)  t = ReduceSum(s)  y = Add(x, t) }",
            {},
            "more than 1,073,741,824",
        ),
        (LOOP.replace("TURNS", "9000000000000"), {}, "the loop has no constant trip count"),
        (
            LOOP.replace("x)", "x, int64 n)", 1).replace("int64 n = {TURNS}, ", ""),
            {"n": Tensor((), "int64")},
            "the loop has no constant trip count",
        ),
    ],
)
def test_what_is_not_is_refused(text, tensors, what):
    with pytest.raises(GraphError, match=what) as caught:
        refuse_unbounded(program(text, **tensors))
    assert caught.value.where or caught.value.what
