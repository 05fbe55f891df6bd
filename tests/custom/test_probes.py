"""Sensitivity of a model with custom nodes: a probe says what the whole model says."""

import numpy as np
import pytest

from custom.files import MODEL, OURS
from npumake.custom.operators import operators_in
from npumake.custom.shapes import with_shapes
from npumake.data.samples import Samples
from npumake.debug.calibration_nodes import with_only, without
from npumake.debug.sensitivity import ModelUnderTest, groups_of, sensitivities
from npumake.engine.float_session import float_session
from npumake.graph import parse_text
from npumake.kernels.measure import agreement
from npumake.passes import optimized
from npumake.project.sections import Calibration
from npumake.quant.calibration.observe import observe
from npumake.quant.qdq.insert import DEFAULT
from npumake.quant.search.methods import calibrated_with, ranges_by_method
from npumake.targets.reader import read_target

OPERATORS = operators_in({"shrink.py": OURS.encode()})
# Three turns of onnxruntime's, with Python's between them.
TWICE = """<ir_version: 8, opset_import: ["" : 13, "vendor.ops" : 1]>
agraph (float[1,1,20,20] image) => (float[1,3] y)
    <float[2,1,3,3] w = {0.5,-0.25,0.125,0.5,0.25,-0.5,0.75,0.5,-0.125,
                         0.25,0.5,-0.75,0.125,0.5,0.25,-0.25,0.5,0.125},
     float[2,2,2,2] u = {1,-1,2,1,-2,1,1,2,1,1,-1,2,2,-1,1,1},
     float[8,3] v = {1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,1,2,3,4,5,6},
     int64[2] flat = {1, -1}> {
    c = Conv<kernel_shape = [3, 3]>(image, w)  r = Relu(c)
    s = vendor.ops.Shrink2<kernel_size = 2, bias = 0.5>(r)
    d = Conv<kernel_shape = [2, 2], strides = [2, 2]>(s, u)  e = Relu(d)
    t = vendor.ops.Shrink2<kernel_size = 2, bias = 0.25>(e)
    f = Reshape(t, flat)
    y = MatMul(f, v) }"""


@pytest.mark.parametrize(("text", "side"), [(MODEL, 8), (TWICE, 20)], ids=["once", "twice"])
def test_a_probe_says_what_the_whole_model_says(text, side):
    graph = optimized(with_shapes(parse_text(text), OPERATORS))
    rng = np.random.default_rng(0)
    feeds = [{"image": rng.normal(size=(1, 1, side, side)).astype(np.float32)} for _ in range(4)]
    recipe = ranges_by_method(graph, observe(graph, feeds, OPERATORS), Calibration("max"), True)
    calibrated = calibrated_with(graph, recipe, read_target("rdk-x5"), DEFAULT)
    samples = Samples(tuple("abcd"), feeds.__getitem__)
    examined = ModelUnderTest(calibrated, samples, OPERATORS)
    groups = groups_of(examined, "node")
    found, real = sensitivities(examined, groups), without(calibrated)
    floats = float_session(real, OPERATORS, "floats")
    assert len(groups) > 1
    for name, group in groups.items():
        places = [one for one in examined.nodes if one.name in group]
        whole = float_session(with_only(real, places), OPERATORS, "floats")
        sums = [agreement(floats.run(None, f)[0], whole.run(None, f)[0]) for f in feeds]
        squared = sum(one.squared for one in sums)
        assert found[name][0].squared == pytest.approx(squared, rel=1e-3, abs=1e-9 * sums[0].aa)
        assert squared > 0
