"""The int16 share: counted from the plan, from the graph with Q/DQ, and again from the file."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from npumake.data.samples import Samples
from npumake.engine.lower import lowered
from npumake.graph import parse_text, upgraded
from npumake.graph.qdq import codes_dtype
from npumake.perf.layers import int16_share as share_of_program
from npumake.project.sections import Calibration, LayerTypes, Quantization
from npumake.quant.calibration.observe import observe
from npumake.quant.precision.int16_share import int16_share, multiply_accumulates, planned_share
from npumake.quant.precision.precision_plan import plan_precision
from npumake.stages.calibrated import calibrated
from npumake.stages.quantized import quantized
from npumake.stages.recipe import recipe
from npumake.targets.reader import read_target

NPU, X5, ULTRA = (read_target(name) for name in ("ara240", "rdk-x5", "rdk-ultra"))
# Four layers of 64, 128, 256 and 64 multiply-accumulates for each of 16 pixels, and a product.
MODEL = """a (float[1,4,4,4] x) => (float[1,4,4,4] y)
<float[16,4,1,1] k, float[8,16,1,1] l, float[32,8,1,1] m, float[32,1,1,1] n, float[4,32,1,1] o>
{ c = Conv(x, k)  r = Relu(c)  d = Conv(r, l)  s = Sigmoid(d)  e = Conv(s, m)
  f = Conv<group=32>(e, n)  y = Conv(f, o) }"""
SHAPES = {"k": (16, 4), "l": (8, 16), "m": (32, 8), "n": (32, 1), "o": (4, 32)}
FEEDS = [
    {"x": np.random.default_rng(n).normal(size=(1, 4, 4, 4)).astype(np.float32)} for n in range(8)
]
FED = Samples(tuple(map(str, range(len(FEEDS)))), FEEDS.__getitem__)
ASKED = ({}, {"*": "int16"}, {"c": "int16"}, {"d": "int16"}, {"s": "int16"}, {"e...": "int16"})


def graph(text=MODEL, shapes=SHAPES):
    for name, sizes in shapes.items():
        weights = np.random.default_rng(len(name)).normal(size=sizes).ravel()
        head = f"float[{','.join(map(str, sizes))},1,1] {name}"
        text = text.replace(head, f"{head} = {{{', '.join(map(str, weights))}}}")
    return upgraded(parse_text(text)).with_shapes()


def made(model, target, asked):
    found = recipe(model, observe(model, FED), FED, Calibration("max"), target, quantization=asked)
    return quantized(calibrated(model, found, FED, target, quantization=asked), target)


@pytest.mark.parametrize(("target", "types"), [*product((NPU, X5, ULTRA), ASKED)])
def test_the_plan_the_graph_and_the_file_have_one_share(target, types):
    model, asked = graph(), Quantization(types=types)
    file = made(model, target, asked)
    share = int16_share(file)
    assert share == planned_share(model, plan_precision(model, asked, target))
    program = lowered(file, target.rounding, target.runnable)
    assert share == pytest.approx(share_of_program(program), abs=1e-6)


def test_a_layer_that_makes_int16_of_8_bits_costs_nothing():
    asked = Quantization(layers={"y": LayerTypes(output="int16")}, outputs="int16")
    file = made(graph(), NPU, asked)
    assert any(codes_dtype(node) == np.int16 for node in file.nodes("QuantizeLinear"))
    assert int16_share(file) == 0


def test_a_layer_on_the_cpu_reads_no_int16():
    wide = Quantization(types={"s": "int16"})
    on_cpu = replace(wide, cpu=("e",))
    files = [made(graph(), X5, asked) for asked in (wide, on_cpu)]
    assert int16_share(files[0]) > 0 == int16_share(files[1])
    program = lowered(files[1], X5.rounding, X5.runnable)
    assert int16_share(files[1]) == pytest.approx(share_of_program(program), abs=1e-6)


def test_a_model_without_products_has_no_share():
    text = "a (float[1,4,4,4] x) => (float[1,4,4,4] y) { y = Sigmoid(x) }"
    assert int16_share(made(graph(text, {}), NPU, Quantization(types={"*": "int16"}))) == 0


@pytest.mark.parametrize(
    ("body", "shape", "count"),
    [
        ("y = MatMul(x, b)  <float[4,2] b>", "2,3,4", 2 * 3 * 4 * 2),
        ("y = Gemm(x, b)  <float[4,2] b>", "3,4", 3 * 4 * 2),
        ("y = Conv(x, b)  <float[6,2,3,3] b>", "1,2,5,5", 6 * 9 * 2 * 9),
        ("y = ConvTranspose(x, b)  <float[2,3,2,2] b>", "1,2,5,5", 50 * 3 * 4),
        ("y = Conv<group=2>(x, b)  <float[2,1,3,3] b>", "1,2,5,5", 2 * 9 * 9),
    ],
)
def test_multiply_accumulates_by_hand(body, shape, count):
    body, _, weight = body.partition("  <")
    text = f"a (float[{shape}] x, {weight.rstrip('>')}) => (float[] y) {{ {body} }}"
    (node,) = parse_text(text).with_shapes().nodes()
    assert multiply_accumulates(node) == count
