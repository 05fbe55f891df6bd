"""An index of an uncertain value may be another one, if the values cannot be told apart."""

from __future__ import annotations

import numpy as np
import pytest

from npumake.debug.compiled_file.index_ties import stands_for
from npumake.debug.compiled_file.runs import why_not_run
from npumake.graph import parse_text
from npumake.targets.reader import read_target
from stages.compiled_files import built, check

X = np.array([[0.5, 0.3, 0.5, 0.1]], np.float32)
NODES = {
    "TopK": "y, z = TopK<axis=1>(x, k)",
    "ArgMax": "z = ArgMax<axis=1, keepdims=0>(x)",
    "ArgMin": "z = ArgMin<axis=1>(x)",
}


def judged(operator, own, tap, error=1e-6):
    text = f"""<ir_version: 8, opset_import: ["" : 17]>
    net (float[1, 4] x) => (int64[1, n] z) <int64[1] k = {{2}}> {{ {NODES[operator]} }}"""
    (node,) = parse_text(text).nodes(operator)
    return stands_for(node, X, np.array(error), np.array(own), np.array(tap)).tolist()


@pytest.mark.parametrize(
    ("operator", "own", "tap", "meant"),
    [
        ("TopK", [[0, 2]], [[2, 0]], [[True, True]]),
        ("TopK", [[0, 2]], [[2, 1]], [[True, False]]),
        ("TopK", [[0, 2]], [[2, 2]], [[True, False]]),
        ("TopK", [[0, 2]], [[2, 4]], [[False, False]]),
        ("ArgMax", [0], [2], [True]),
        ("ArgMax", [0], [1], [False]),
        ("ArgMin", [[3]], [[1]], [[False]]),
    ],
)
def test_an_index_stands_for_one_of_an_equal_value(operator, own, tap, meant):
    assert judged(operator, own, tap) == meant


def test_values_within_both_errors_are_equal():
    assert judged("ArgMin", [[3]], [[1]], 0.11) == [[True]]
    assert judged("ArgMin", [[3]], [[1]], 0.09) == [[False]]


@pytest.mark.slow
def test_of_equal_values_openvino_picks_the_lower_index_first():
    if reason := why_not_run(read_target("openvino-cpu")):
        pytest.skip(reason)
    text = """<ir_version: 8, opset_import: ["" : 17]>
    net (float[1, 4000] x) => (float[1, 60] y, int64[1, 60] z, int64[1, 1] w) <int64[1] k = {60}> {
      [clamp] a = Relu(x)
      [best] y, z = TopK<axis=1>(a, k)
      [first] w = ArgMax<axis=1>(a)
    }"""
    made = built(parse_text(text).with_shapes(), "openvino-cpu")
    assert [output.codes for output in check(made).outputs[1:]] == [0, 0]
