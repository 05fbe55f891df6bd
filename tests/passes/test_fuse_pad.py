"""A Pad done by the window behind it, and the pads no window does."""

import numpy as np
import pytest

from npumake.graph import attribute, parse_text
from npumake.passes.fuse_pad import fuse_pad

CONSTANTS = """float[1,2,3,3] w = {1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9}, int64[4] hw = {1,0,0,2},
    int64[2] axes = {2,-1}, int64[8] all = {0,0,1,0,0,0,0,2}, int64[8] cut = {0,0,-1,0,0,0,0,2},
    int64[8] deep = {0,1,0,0,0,0,0,0}, int64[8] wide = {0,0,3,0,0,0,0,0}, float one = {1},
    float zero = {0}, float[1,3,3,3] v = {1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9}"""


def of(body: str):
    header = '<ir_version: 9, opset_import: ["" : 18]>'
    return parse_text(f"{header} a (float[1,2,6,7] x) => (float[A,B,N,M] y) "
                      f"<{CONSTANTS}> {{ {body} }}")  # fmt: skip


@pytest.mark.parametrize(
    ("body", "pads"),
    [
        ("p = Pad(x, all)  y = Conv(p, w)", (1, 0, 0, 2)),
        ("p = Pad(x, hw, , axes)  y = Conv<pads=[1,1,1,1]>(p, w)", (2, 1, 1, 3)),
        ("p = Pad(x, wide)  y = Conv(p, w)", (3, 0, 0, 0)),
        ('p = Pad(x, all)  y = Conv<auto_pad="VALID">(p, w)', (1, 0, 0, 2)),
        ("p = Pad(x, all)  y = AveragePool<kernel_shape=[3,3]>(p)", (1, 0, 0, 2)),
        (
            "p = Pad(x, all)  y = AveragePool<kernel_shape=[3,4], pads=[1,1,1,1],"
            " count_include_pad=1>(p)",
            (2, 1, 1, 3),
        ),
        ("r = Relu(x)  p = Pad(r, all)  y = MaxPool<kernel_shape=[3,3]>(p)", (1, 0, 0, 2)),
        ("r = Clip(x, zero)  p = Pad(r, all)  y = MaxPool<kernel_shape=[3,3]>(p)", (1, 0, 0, 2)),
    ],
)
def test_a_pad_becomes_the_pads_of_the_window(body, pads, outputs):
    graph = of(body)
    before = outputs(graph)["y"]
    assert fuse_pad(graph) == 1
    assert graph.nodes("Pad") == []
    assert attribute(graph.nodes()[-1], "pads") == pads
    np.testing.assert_allclose(outputs(graph)["y"], before, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    "body",
    [
        "p = Pad(x, all, one)  y = Conv(p, w)",
        'p = Pad<mode="edge">(x, all)  y = Conv(p, w)',
        "p = Pad(x, cut)  y = Conv(p, w)",
        "p = Pad(x, deep)  y = Conv(p, v)",
        'p = Pad(x, all)  y = Conv<auto_pad="SAME_UPPER">(p, w)',
        "p = Pad(x, all)  y = MaxPool<kernel_shape=[3,3]>(p)",
        "p = Pad(x, all)  y = AveragePool<kernel_shape=[3,3], pads=[1,1,1,1]>(p)",
        "p = Pad(x, all)  y = AveragePool<kernel_shape=[2,2], ceil_mode=1, strides=[2,2]>(p)",
        "p = Pad(x, wide)  y = AveragePool<kernel_shape=[3,3]>(p)",
        "p = Pad(x, all)  c = Conv(p, w)  d = Abs(p)  s = ReduceMax(d)  y = Add(c, s)",
    ],
    ids=["ones", "edges", "cut off", "channels", "SAME", "a maximum of negatives", "its own pads",
         "ceil_mode", "a window of padding alone", "read twice"],
)  # fmt: skip
def test_a_pad_that_no_window_does_is_left_alone(body):
    assert fuse_pad(of(body)) == 0
