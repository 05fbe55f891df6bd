"""A model that hands out what it makes on the way, whichever way it is set up."""

import math
import platform

import numpy as np
import pytest

from npumake.engine import observed_session as module
from npumake.engine.observed_session import watching
from npumake.graph import ExtraOutput, parse_text

BODY = """{ c = Conv<pads=[1,1,1,1]>(x, w)  r = Relu(c)  d = Conv(r, v)
  m = MaxPool<kernel_shape=[2,2]>(d)  e = Sigmoid(m)  y = Mul(m, e) }"""
SOME = ExtraOutput("some", "MaxPool", "r", {"kernel_shape": [1, 1], "strides": [2, 2]})
HANDED = [["r", SOME], ["d"], ["e"]]
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
    return found.with_shapes()


SHAPES = {"r": (1, 32, 12, 12), "some": (1, 32, 6, 6), "d": (1, 20, 12, 12), "e": (1, 20, 11, 11)}


def written(watched, shapes, feeds):
    """By name what is handed out, as the graph has it, the next segment written over the last."""
    starts = {}
    for names in watched.segments:
        ends = np.cumsum([math.prod(shapes[name]) for name in names]).tolist()
        starts |= dict(zip(names, [0, *ends], strict=False))
    buffer = np.full(sum(map(math.prod, shapes.values())), np.nan, "f")
    write = watched.writer(starts, buffer)
    found = []
    for feed in feeds:
        arrays = {}
        for names, made in zip(watched.segments, write(feed), strict=True):
            for name in names:
                part = made[starts[name] :][: math.prod(shapes[name])].reshape(shapes[name])
                arrays[name] = laid_out(part.copy(), watched.blocks.get(name, 1))
        found.append({name: arrays[name].tobytes() for name in shapes})
    return found


def laid_out(array, block):
    if array.ndim != 4:
        return array
    images, channels, rows, columns = array.shape
    apart = array.reshape(images, channels // block, rows, columns, block)
    return np.moveaxis(apart, -1, 2).reshape(array.shape)


def noise(shape, count=2):
    rng = np.random.default_rng(1)
    return [{"x": rng.normal(size=shape).astype("f")} for _ in range(count)]


@pytest.mark.parametrize(("most", "segments"), [(1 << 20, 1), (6000, 2), (1, 3)])
def test_neither_order_nor_blocks_nor_segments_change_a_bit(graph, most, segments, monkeypatch):
    monkeypatch.setattr(module, "SEGMENT_ELEMENTS", most)
    feeds = noise((1, 32, 12, 12))
    plain, hasty = watching(graph, HANDED), watching(graph, HANDED, values=OFTEN)
    assert written(hasty, SHAPES, feeds) == written(plain, SHAPES, feeds)
    assert (len(plain.segments), len(hasty.segments)) == (1, segments)
    assert not plain.blocks
    # d and e have 20 channels, which fill no number of blocks.
    expected = {"r", "some"} if hasty.blocks or platform.machine() == "x86_64" else set()
    assert hasty.blocks.keys() == expected
    assert set(hasty.blocks.values()) <= {8, 16}  # as wide as the processor's registers


def test_what_is_read_far_behind_or_is_no_float_is_carried_there(monkeypatch):
    """`r` is handed out and read again in the last segment; what ArgMax makes is int64."""
    monkeypatch.setattr(module, "SEGMENT_ELEMENTS", 1)
    graph = parse_text(
        """a (float[4,6] x) => (float[] y) <int64[1] k = {0}> { r = Relu(x)  a = ArgMax<axis=1>(r)
        n = Neg(r)  e = Exp(n)  f = Cast<to=1>(a)  g = Add(e, f)  h = Add(g, r)  y = Add(h, x) }"""
    ).with_shapes()
    names = ["x", "r", "n", "e", "f", "g", "h", "y"]
    shapes = {name: (4, 1) if name == "f" else (4, 6) for name in names}
    handed = [[name] for name in names]
    feeds = noise((4, 6))
    plain, hasty = watching(graph, handed), watching(graph, handed, values=OFTEN)
    assert len(hasty.segments) > 3
    assert written(hasty, shapes, feeds) == written(plain, shapes, feeds)


def test_a_model_that_computes_nothing_hands_out_what_it_is_fed():
    graph = parse_text("a (float[4] x) => (float[4] y) { y = Identity(x) }")
    feeds = noise((4,))
    found = written(watching(graph, [["x"]], values=OFTEN), {"x": (4,)}, feeds)
    assert found == [{"x": feed["x"].tobytes()} for feed in feeds]


def test_a_model_with_branches_runs_as_it_is():
    text = """a (float[4] x, bool c) => (float[4] y) { y = If(c) <
        then_branch = t () => (float[4] a) { a = Neg(x) },
        else_branch = e () => (float[4] b) { b = Abs(x) }> }"""
    feeds = {"x": np.array([1, -2, 3, -4], "f"), "c": np.array(True)}
    watched = watching(parse_text(text), [["x"], ["y"]], values=OFTEN)
    (found,) = written(watched, {"x": (4,), "y": (4,)}, [feeds])
    assert found == {"x": feeds["x"].tobytes(), "y": (-feeds["x"]).tobytes()}
