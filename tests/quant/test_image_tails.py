"""The tail of a super-resolution network is integer to the border wherever the unit runs it."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from npumake.engine.exact import ExactSession
from npumake.engine.lower import lowered
from npumake.engine.ort import OrtSession
from npumake.graph import parse_text
from npumake.kernels.measure import agreement
from npumake.passes import optimized
from npumake.project.sections import Calibration, Quantization
from npumake.quant.calibration.observe import observe
from npumake.quant.search.methods import calibrated_with, ranges_by_method
from npumake.stages.quantized import quantized
from npumake.targets.reader import read_target, target_names
from workspaces import few

RNG = np.random.default_rng(0)
FIRST, LAST = (
    ",".join(f"{x:.3f}" for x in RNG.normal(0, 0.3, size)) for size in (8 * 3 * 9, 12 * 8 * 9)
)
TAILS = {
    "columns first": 'y = DepthToSpace<blocksize=2, mode="CRD">(d)',
    "clipped": "e = DepthToSpace<blocksize=2>(d)  y = Clip(e, zero, one)",
    "clamped by Max and Min": "e = DepthToSpace<blocksize=2>(d)  m = Max(e, zero)  y = Min(m, one)",
    "beside the enlarged input": 'e = DepthToSpace<blocksize=2, mode="CRD">(d)  u = Resize<'
    'mode="nearest", nearest_mode="floor", coordinate_transformation_mode="asymmetric">(x, , s)'
    "  y = Add(e, u)",
    "with what is repeated": "w1 = ReduceMax(d, last)  t = Tile(w1, eight)  m = Max(d, t)"
    '  y = DepthToSpace<blocksize=2, mode="CRD">(m)',
}
TYPES = {"int8": {}, "int16": {"*": "int16"}}
CLOSE = 0.995  # the least cosine of eight bits with the floats
# Units that run no operator of the network, and one without Tile and Max.
NO_OPERATORS = {"dvf120", "sl1620", "synap-generic"}
NO_SELECTION = {"rdk-x3"}
SAMPLE = {"tflite", "rdk-x5", "rdk-x3", "nash-e", "sl1680", "ara240", "onnx", "ethos-u85-256"}
FED = {"x": RNG.uniform(size=(1, 3, 8, 8)).astype(np.float32)}


@cache
def network(tail):
    return optimized(
        parse_text(
            f"""<ir_version: 10, opset_import: ["" : 21]> a (float[1,3,8,8] x) => (float[] y)
            <float zero = {{0.0}}, float one = {{1.0}}, float[4] s = {{1.0,1.0,2.0,2.0}},
             int64[1] last = {{3}}, int64[4] eight = {{1,1,1,8}}, float[8,3,3,3] w = {{{FIRST}}},
             float[12,8,3,3] v = {{{LAST}}}>
            {{ c = Conv<pads=[1,1,1,1]>(x, w)  r = Relu(c)  d = Conv<pads=[1,1,1,1]>(r, v)
               {TAILS[tail]} }}"""
        ).with_shapes()
    )


@pytest.mark.parametrize("types", TYPES)
@pytest.mark.parametrize("tail", TAILS)
@pytest.mark.parametrize("name", few(target_names(), SAMPLE.__contains__))
def test_an_image_leaves_the_unit_as_codes(name, tail, types):
    graph, target = network(tail), read_target(name)
    if name in NO_OPERATORS or (name in NO_SELECTION and "repeated" in tail):
        pytest.skip("the unit does not run all of its operators")
    asked = Quantization(types=TYPES[types])
    symmetric = target.activations.symmetric
    recipe = ranges_by_method(graph, observe(graph, [FED]), Calibration("max"), symmetric=symmetric)
    made = quantized(calibrated_with(graph, recipe, target, asked), target)
    program = lowered(made, target.rounding, target.runnable)
    assert "onnx" not in {step.op for step in program.instructions}
    session = ExactSession(program, at_once=1)
    (given,), (meant,) = session.run(None, FED), OrtSession(graph.to_bytes(), 1).run(None, FED)
    assert agreement(meant, given).cosine > CLOSE
