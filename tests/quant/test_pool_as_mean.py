"""An int16 GlobalAveragePool as a ReduceMean: the same codes, where a chip says int16 of that."""

from dataclasses import replace

import numpy as np
import onnx
import pytest

from npumake.data.samples import Samples
from npumake.engine.lower import lowered
from npumake.engine.ort import OrtSession
from npumake.engine.reference import ReferenceSession
from npumake.graph import origin, parse_text, upgraded
from npumake.project.sections import Calibration, Quantization
from npumake.quant.calibration.observe import observe
from npumake.quant.qdq.pool_as_mean import pool_as_mean
from npumake.stages.calibrated import calibrated
from npumake.stages.quantized import quantized
from npumake.stages.recipe import recipe
from npumake.targets.reader import read_target

X5, NPU = read_target("rdk-x5"), read_target("ara240")
MODEL = """a (float[1,2,3,5] x) => (float[1,4,1,1] y) <float[4,2,1,1] w = {1,-2,3,4,-1,2,0.5,1}>
{ c = Conv(x, w)  r = Relu(c)  y = GlobalAveragePool(r) }"""
FEEDS = [
    {"x": np.random.default_rng(i).normal(size=(1, 2, 3, 5)).astype(np.float32)} for i in range(8)
]
FED = Samples(tuple(map(str, range(len(FEEDS)))), FEEDS.__getitem__)
WIDE = Quantization({"c": "int16", "y": "int16"})


def made(target, asked):
    graph = upgraded(parse_text(MODEL)).with_shapes()
    found = recipe(graph, observe(graph, FED), FED, Calibration("max"), target, quantization=asked)
    return calibrated(graph, found, FED, target, quantization=asked)


def test_the_list_of_the_chip_says_int16_of_the_mean_alone():
    assert X5.int16 is not None
    assert "ReduceMean" in X5.int16
    assert "GlobalAveragePool" not in X5.int16
    assert X5.takes_int16("GlobalAveragePool")
    assert not X5.takes_int16("AveragePool")
    assert not read_target("rdk-x3").takes_int16("GlobalAveragePool")
    assert NPU.int16_as("GlobalAveragePool") is None


def test_the_codes_are_those_of_the_pool_bit_for_bit():
    graph = made(X5, WIDE)
    mean = quantized(graph, X5)
    pool = quantized(graph, replace(X5, int16=None))
    assert [node.name for node in mean.nodes("ReduceMean")] == ["y"]
    assert [node.name for node in pool.nodes("GlobalAveragePool")] == ["y"]
    onnx.checker.check_model(onnx.load_from_string(mean.to_bytes()), full_check=True)
    (rewritten,), (before,) = mean.nodes("ReduceMean"), pool.nodes("GlobalAveragePool")
    assert origin(rewritten) == origin(before)
    for feed in FEEDS:
        codes = [
            ReferenceSession(lowered(each, X5.rounding)).run(None, feed) for each in (mean, pool)
        ]
        np.testing.assert_array_equal(*codes)
        floats = [OrtSession(each.to_bytes()).run(None, feed)[0] for each in (mean, pool)]
        np.testing.assert_allclose(*floats, rtol=1e-4)


@pytest.mark.parametrize(
    ("target", "asked"),
    [(X5, Quantization(outputs="int8")), (NPU, WIDE), (X5, Quantization(cpu=("y",)))],
)
def test_a_pool_on_int8_on_the_cpu_and_of_other_chips_stays_one(target, asked):
    graph = made(target, asked)
    assert quantized(graph, target).nodes("GlobalAveragePool")
    assert pool_as_mean(graph, target) == 0
