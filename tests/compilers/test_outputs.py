"""Outputs that are constants: an Identity of the constant, on every target."""

from __future__ import annotations

import numpy as np
import pytest

from npumake.compilers.tflite import tflite_file
from npumake.engine.exact import ExactSession
from npumake.engine.lower import lowered
from npumake.engine.ort import OrtSession
from npumake.graph import array, parse, parse_text
from npumake.passes import optimized
from npumake.passes.fold_outputs import fold_outputs
from npumake.project.sections import Calibration
from npumake.quant.calibration.observe import observe
from npumake.quant.qdq.insert import DEFAULT
from npumake.quant.search.methods import calibrated_with, ranges_by_method
from npumake.runtime.litert import LiteRtSession
from npumake.stages.quantized import quantized
from npumake.targets.reader import read_target

X = {"x": np.random.default_rng(0).normal(size=(1, 2, 3, 3)).astype(np.float32)}
CONSTANTS = """<float[2,2,1,1] w = {1, 2, 3, 4}, float[1,2] k = {5, 6}, int64[2] i = {7, 8},
    bool[2] t = {1, 0}, float s = {9}, float[1,2,1,1] a = {1, -1}>"""
# The output y, beside a Conv c of x.
OUTPUTS = {
    "constant": "float[1,2] y | y = Identity(k)",
    "initializer": "float[1,2] k |",
    "weight": "float[2,2,1,1] w |",
    "reshaped": "float[2] y | y = Reshape(k, d)",
    "sum of constants": "float[1,2] y | y = Add(k, k)",
    "integers": "int64[2] y | y = Identity(i)",
    "truths": "bool[2] y | y = Identity(t)",
    "scalar": "float y | y = Identity(s)",
    "shape": "int64[4] y | y = Shape(c)",
    "read inside": "float[1,2,1,1] y | y = Identity(a) z = Add(c, a)",
    "read inside too": "float[1,2,1,1] y | y = Add(a, a) z = Add(c, y)",
    "what is fed": "float[1,2,3,3] y | y = Identity(x)",
    "input": "float[1,2,3,3] x |",
    "twice": "float[1,2,3,3] y, float[1,2,3,3] z | y = Identity(c) z = Identity(c)",
    "scalar of a mean": "float y | y = ReduceMean<keepdims=0>(c)",
}


def model(name: str):
    declared, _, nodes = OUTPUTS[name].partition("|")
    held = CONSTANTS.replace(">", ", int64[1] d = {2}>")
    text = f"agraph (float[1,2,3,3] x) => (float[1,2,3,3] c, {declared}) {held}"
    return parse_text(f"{text} {{ c = Conv(x, w) {nodes} }}")


def integers(graph, chip: str):
    target = read_target(chip)
    recipe = ranges_by_method(graph, observe(graph, [X]), Calibration("max"), symmetric=False)
    made = quantized(calibrated_with(graph, recipe, target, DEFAULT), target)
    return made, lowered(made, target.rounding, target.runnable)


@pytest.mark.parametrize("name", OUTPUTS)
def test_every_target_gives_it(name):
    pytest.importorskip("ai_edge_litert.interpreter", reason="LiteRT is not installed")
    graph = model(name)
    wanted = OrtSession(graph.to_bytes()).run(None, X)
    better = optimized(parse(graph.to_bytes(), "m.onnx"))
    exact = ExactSession(integers(better, "ara240")[1]).run(None, X)
    made, program = integers(better, "tflite")
    session = LiteRtSession(tflite_file(program, made), "m.tflite")
    (port,) = session.inputs
    fed = X["x"] if tuple(port.shape) == X["x"].shape else X["x"].transpose(0, 2, 3, 1)
    given = session.run(None, {"x": np.ascontiguousarray(fed)})
    for want, one, other in zip(wanted, exact, given, strict=True):
        other = other if other.shape == want.shape else other.transpose(0, 3, 1, 2)
        step = 0.1 if want.dtype == np.float32 else 0
        assert (one.shape, one.dtype) == (want.shape, want.dtype)
        assert (other.shape, other.dtype) == (want.shape, want.dtype)
        np.testing.assert_allclose(one, want, atol=step)
        np.testing.assert_allclose(other, want, atol=step)


def test_an_output_of_constants_is_an_identity_of_one():
    graph = model("sum of constants")
    assert fold_outputs(graph) == 1
    (identity,) = graph.nodes("Identity")
    np.testing.assert_array_equal(array(identity.inputs[0]), [[10, 12]])
    assert fold_outputs(graph) == 0
