"""Branches run at the same time, to the same bits whatever the number of threads."""

import threading

import numpy as np
import pytest

from npumake.custom.operators import Operators, operators_in
from npumake.engine.branches import Branches, ParallelTurn
from npumake.engine.exact import ExactSession
from npumake.engine.lower import lowered
from npumake.engine.reference import ReferenceSession
from npumake.engine.subgraphs import joined
from npumake.errors import StageError
from npumake.graph import declare, parse_text

# The chip, two operators of the user's on the CPU that do not know of each other, the chip.
GRAPH = """<ir_version: 9, opset_import: ["" : 17, "mine" : 1]>
    agraph (float[1,8] x) => (float[1,8] y)
    <float s = {0.25}, int8 o = {0}, int8[8,8] w = {WEIGHTS}> {
    q = QuantizeLinear(x, s, o)  d = DequantizeLinear(q, s, o)
    wd = DequantizeLinear(w, s, o)
    m = MatMul(d, wd)  r = QuantizeLinear(m, s, o)  e = DequantizeLinear(r, s, o)
    a = mine.Left(e)  b = mine.Right(e)
    t = QuantizeLinear(a, s, o)  f = DequantizeLinear(t, s, o)
    u = QuantizeLinear(b, s, o)  g = DequantizeLinear(u, s, o)
    c = Add(f, g)  v = QuantizeLinear(c, s, o)  y = DequantizeLinear(v, s, o) }
    """.replace("WEIGHTS", ", ".join(str(i % 7 - 3) for i in range(64)))
OPERATORS = b"""
import threading
import time
from horizon_nn.custom import op_implement_register

MEET = threading.Barrier(2)

class Both:
    def compute(self, x):
        WAIT
        return self.by * x

@op_implement_register("Left")
class Left(Both):
    by = 2.0

@op_implement_register("Right")
class Right(Both):
    by = -0.5
"""
X = {"x": np.random.default_rng(0).normal(size=(1, 8)).astype(np.float32)}


def program():
    graph = parse_text(GRAPH)
    for name in "ab":
        declare(graph.values()[name], (1, 8), graph.inputs[0])
    return joined(lowered(graph.with_shapes(), "half_even"))


def operators(wait: bytes) -> Operators:
    return operators_in({"op.py": OPERATORS.replace(b"WAIT", wait)})


def test_two_branches_are_in_python_at_the_same_time():
    """Each waits until the other is there, too: one behind the other would break the barrier."""
    session = ExactSession(program(), operators(b"MEET.wait(600)"), at_once=2)
    for _ in range(20):
        session.run(None, X)


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
def test_the_bits_do_not_depend_on_the_threads(threads):
    own = operators(b"pass")
    (exact,) = ReferenceSession(program(), own).run(None, X)
    session = ExactSession(program(), own, at_once=threads)
    for _ in range(10):
        np.testing.assert_array_equal(session.run(None, X)[0], exact)


def test_of_two_failures_the_first_in_order_is_told():
    """Though the second is there before it."""
    fails = b"MEET.wait(600); assert self.by < 0 or not time.sleep(0.2); 1 / 0"
    session = ExactSession(program(), operators(fails), at_once=2)
    with pytest.raises(StageError, match="Left"):
        session.run(None, X)


def test_nothing_begins_behind_a_failure():
    begun = []

    def turn(name: str, reads: tuple[str, ...], fails: bool = False) -> ParallelTurn:
        def run(values):
            begun.append(name)
            if fails:
                raise ZeroDivisionError(name)
            return {name: np.zeros(1)}

        return ParallelTurn(reads, (name,), run)

    turns = [turn("a", ("x",), fails=True), turn("b", ("x",)), turn("c", ("b",)), turn("d", ("c",))]
    with pytest.raises(ZeroDivisionError):
        Branches(turns, 1).run({"x": np.zeros(1)})
    assert begun == ["a"]
    begun.clear()
    with pytest.raises(ZeroDivisionError):
        Branches(turns, 2).run({"x": np.zeros(1)})
    assert {"a", "b"} <= set(begun)
    assert threading.active_count() < 50
