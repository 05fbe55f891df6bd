"""quantized.onnx opens in onnxruntime as it comes, whatever the CPU moves."""

from types import MappingProxyType

import numpy as np
import onnxruntime
import pytest

from npumake.engine.lower import lowered
from npumake.engine.ort import OrtSession
from npumake.engine.reference import ReferenceSession
from npumake.graph import parse_text, upgraded
from npumake.project.sections import Quantization
from quant.test_types import NPU, X3, quantized

MOVED = {
    "an answer": "y = Transpose<perm=[0,2,3,1]>(c)",
    "two behind each other": "t = Transpose<perm=[0,2,3,1]>(c)  y = Reshape(t, flat)",
    "what the CPU reads": "r = Reshape(c, flat)  y = Sin(r)",
    "what a grid reads, and the world": "y = Reshape(c, flat)  z = Softmax(y)",
    "what the chip reads": "s = Slice(c, one, three, one)  y = Conv(s, v)",
}
FED = {"x": np.random.default_rng(0).normal(size=(1, 2, 4, 4)).astype(np.float32)}


def graph(body, opset):
    more = ", float[] z" if "z =" in body else ""
    text = f"""<ir_version: 10, opset_import: ["" : {opset}]>
        a (float[1,2,4,4] x) => (float[] y{more}) <float[4,2,1,1] w = {{1,-2,0.5,3,1,1,2,0.5}},
        float[2,2,1,1] v = {{1,-1,2,0.5}}, int64[2] flat = {{1,-1}}, int64[1] one = {{1}},
        int64[1] three = {{3}}> {{ c = Conv(x, w)  {body} }}"""
    return upgraded(parse_text(text)).with_shapes()


def opened(model, entries=MappingProxyType({})):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    for key, value in entries.items():
        options.add_session_config_entry(key, value)
    return onnxruntime.InferenceSession(
        model.to_bytes(), options, providers=["CPUExecutionProvider"]
    )


@pytest.mark.parametrize("opset", [17, 21])
@pytest.mark.parametrize("chip", [X3, NPU], ids=["symmetric", "asymmetric"])
@pytest.mark.parametrize("body", MOVED.values(), ids=MOVED)
def test_what_the_cpu_moves_opens_in_onnxruntime_and_is_not_rounded_again(body, chip, opset):
    model = graph(body, opset)
    moves = [str(node.name) for node in model.nodes("Reshape", "Slice", "Transpose")]
    made = quantized(model, chip, Quantization(cpu=tuple(moves)))
    assert opened(made).run(None, FED)  # as it comes
    # Without VNNI onnxruntime adds two products of int8 in 16 bits, unless it is told not to.
    session = opened(made, {"session.x64quantprecision": "1"})
    steps = lowered(made, "half_even", chip.runnable)
    assert {step.name for step in steps.instructions if step.op == "onnx"} >= set(moves)
    exact = ReferenceSession(steps).run(None, FED)
    unfused = OrtSession(made.to_bytes(), 1, "none").run(None, FED)
    for a, b, c in zip(session.run(None, FED), unfused, exact, strict=True):
        np.testing.assert_allclose(a, b, atol=0.05)
        np.testing.assert_allclose(c, b, atol=0.05)
