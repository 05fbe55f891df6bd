"""A session that hands out what it makes on the way, whichever way it is set up."""

import platform

import numpy as np
import pytest

from pipeline.engine.mixed import watching_session
from pipeline.graph import Graph, Made, parse_text

BODY = """{ c = Conv<pads=[1,1,1,1]>(x, w)  r = Relu(c)  d = Conv(r, v)
  m = MaxPool<kernel_shape=[2,2]>(d)  e = Sigmoid(m)  y = Mul(m, e) }"""
HANDED = ["r", Made("some", "MaxPool", "r", {"kernel_shape": [1, 1], "strides": [2, 2]}), "d", "e"]
OFTEN = 1 << 40  # values, for which any set-up is worth its while


@pytest.fixture(scope="module")
def graph():
    """Wide enough for onnxruntime's blocked layout."""
    found = parse_text(
        f"a (float[1,32,12,12] x, float[32,32,3,3] w, float[20,32,1,1] v) => (float[] y) {BODY}"
    )
    rng = np.random.default_rng(0)
    for value in found.inputs[1:]:
        weight = found.constant(f"{value.name}_of", rng.normal(size=value.shape).astype("f"))
        value.replace_all_uses_with(weight)
        found.drop_input(value)
    return found


def runs(graph: Graph, values: int):
    """By name, laid out as the graph has it, and which were in blocks of channels."""
    session, blocks = watching_session(graph, HANDED, values=values)
    x = np.random.default_rng(1).normal(size=(1, 32, 12, 12)).astype("f")
    made = dict(zip(session.output_names, session.run(None, {"x": x}), strict=True))
    return {name: laid_out(array, blocks.get(name, 1)) for name, array in made.items()}, blocks


def laid_out(array, block):
    images, channels, rows, columns = array.shape
    apart = array.reshape(images, channels // block, rows, columns, block)
    return np.moveaxis(apart, -1, 2).reshape(array.shape)


def test_neither_the_order_of_its_nodes_nor_blocks_of_channels_change_a_bit(graph):
    expected, none = runs(graph, 0)
    found, blocks = runs(graph, OFTEN)
    assert list(found) == list(expected) == ["r", "some", "d", "e"]
    assert [a.tobytes() for a in found.values()] == [b.tobytes() for b in expected.values()]
    assert not none
    # d and e have 20 channels, which fill no number of blocks.
    assert blocks.keys() == ({"r", "some"} if blocks or platform.machine() == "x86_64" else set())
    assert set(blocks.values()) <= {8, 16}  # as wide as the processor's registers


def test_a_model_with_branches_runs_as_it_is():
    text = """a (float[4] x, bool c) => (float[4] y) { y = If(c) <
        then_branch = t () => (float[4] a) { a = Neg(x) },
        else_branch = e () => (float[4] b) { b = Abs(x) }> }"""
    feeds = {"x": np.array([1, -2, 3, -4], "f"), "c": np.array(True)}
    session, _ = watching_session(parse_text(text), ["x", "y"], values=OFTEN)
    assert [a.tolist() for a in session.run(None, feeds)] == [[1, -2, 3, -4], [-1, 2, -3, 4]]
