"""A bias behind a MatMul becomes that of a Gemm: one rounding in the place of two."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from npumake.engine.lower import lowered
from npumake.engine.ort import OrtSession
from npumake.engine.reference import ReferenceSession
from npumake.graph import Graph, parse, upgraded
from npumake.graph import shape as shape_of
from npumake.passes import optimized
from npumake.project.sections import Calibration, Quantization
from npumake.quant.calibration.observe import observe
from npumake.quant.qdq.product_bias import product_bias
from npumake.quant.search.methods import calibrated_with, ranges_by_method
from npumake.stages.quantized import quantized
from npumake.targets.reader import read_target

RNG = np.random.default_rng(8)
TARGETS = ("onnx", "tflite", "ara240")


def held(name: str, *shape: int) -> onnx.TensorProto:
    values = RNG.normal(size=shape) * (3 if len(shape) < 2 else shape[0] ** -0.5)
    return onnx.numpy_helper.from_array(values.astype(np.float32), name)


def graph_of(body: str, shape: str, *weights: onnx.TensorProto) -> Graph:
    text = f'<ir_version: 8, opset_import: ["": 17]> g (float[{shape}] x) => (float[] y) {{{body}}}'
    model = onnx.parser.parse_model(text)
    model.graph.initializer.extend(weights)
    model.graph.output[0].type.tensor_type.ClearField("shape")
    model = onnx.shape_inference.infer_shapes(model)
    return optimized(parse(model.SerializeToString(), "model.onnx").with_shapes())


TWICE = """
    p = MatMul(x, w1) a = Add(b1, p) r = Relu(a)
    q = MatMul(r, w2) y = Add(q, b2)
"""


def twice(shape: str, channels: int = 24) -> Graph:
    inner = held("w1", 48, 40), held("b1", 40)
    return graph_of(TWICE, shape, *inner, held("w2", 40, channels), held("b2", channels))


def calibrated(graph: Graph, name: str, asked: Quantization = Quantization()) -> Graph:  # noqa: B008
    target = read_target(name)
    calibration = Calibration("max")
    recipe = ranges_by_method(
        graph, observe(graph, [feed_of(graph)]), calibration, target.activations.symmetric
    )
    return calibrated_with(graph, recipe, target, asked)


def feed_of(graph: Graph) -> dict[str, np.ndarray]:
    return {"x": RNG.normal(size=shape_of(graph.inputs[0])).astype(np.float32)}


def computed(graph: Graph, name: str, fed: dict[str, np.ndarray]) -> tuple[np.ndarray, float]:
    """The output of the integer engine, and one code of it."""
    target = read_target(name)
    found = quantized(graph, target)
    program = lowered(found, target.rounding, target.runnable)
    (output,) = ReferenceSession(program).run(None, fed)
    (last,) = (s for s in program.instructions if s.outputs[0] == program.outputs[0])
    return output, program.tensors[last.inputs[0]].scale


def operators(graph: Graph) -> list[str]:
    return [node.op_type for node in graph.nodes() if "Linear" not in node.op_type]


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("shape", ["1, 50, 48", "2, 3, 15, 48"])
def test_both_biases_join_their_products_and_the_error_falls(name, shape):
    graph, target = twice(shape), read_target(name)
    apart = calibrated(graph, name)
    together = apart.copy()
    assert product_bias(together, target) == 2
    layer = ("Reshape", "Gemm", "Reshape")
    assert [kind for kind in operators(together) if kind != "Relu"] == [*layer, *layer]
    fed = feed_of(graph)
    (meant,) = OrtSession(graph.to_bytes()).run(None, fed)
    errors = [np.square(computed(each, name, fed)[0] - meant).mean() for each in (apart, together)]
    assert errors[1] < errors[0]


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize(
    ("shape", "channels"), [("1, 50, 48", 1), ("1, 1, 48", 24), ("1, 1, 48", 1)]
)
def test_one_row_or_one_channel_is_a_matrix_too(name, shape, channels):
    graph = twice(shape, channels)
    together = calibrated(graph, name)
    assert product_bias(together, read_target(name)) == 2
    exact, step = computed(together, name, fed := feed_of(graph))
    (meant,) = OrtSession(quantized(together, read_target(name)).to_bytes()).run(None, fed)
    assert exact.shape == meant.shape
    assert np.abs(exact - meant).max() < 1.5 * step


def test_the_tensor_behind_the_bias_keeps_its_grid_and_name():
    graph = calibrated(twice("1, 50, 48"), "onnx")
    before = {str(value.name) for value in graph.outputs}
    names = {str(node.name) for node in graph.nodes("Add")}
    product_bias(graph, read_target("onnx"))
    assert {str(value.name) for value in graph.outputs} == before
    assert {str(node.name) for node in graph.nodes("Gemm")} == names


@pytest.mark.parametrize("name", ["rdk-x5", "rdk-x3"])
def test_a_chip_whose_tool_has_a_published_form_keeps_the_add(name):
    graph = calibrated(twice("1, 50, 48"), name)
    assert product_bias(graph, read_target(name)) == 0


def test_int16_keeps_the_add():
    graph = calibrated(upgraded(twice("1, 50, 48")), "onnx", Quantization(types={"*": "int16"}))
    assert product_bias(graph, read_target("onnx")) == 0


@pytest.mark.parametrize(
    "body",
    [
        "p = MatMul(x, w) a = Add(p, b) s = Sigmoid(p) y = Mul(a, s)",  # read twice
        "p = MatMul(x, w) y = Add(p, p)",  # no constant
        "p = MatMul(x, w) y = Add(p, rows)",  # another one for each row
    ],
)
def test_another_sum_behind_a_product_stays(body):
    weights = held("w", 48, 40), held("b", 40), held("rows", 50, 1)
    graph = calibrated(graph_of(body, "1, 50, 48", *weights), "onnx")
    assert product_bias(graph, read_target("onnx")) == 0


def test_a_bias_beyond_the_sums_of_its_product_stays():
    wide = onnx.numpy_helper.from_array(np.full(40, 1e8, np.float32), "b")
    narrow = onnx.numpy_helper.from_array(np.full((48, 40), 1e-6, np.float32), "w")
    graph = graph_of("p = MatMul(x, w) y = Add(p, b)", "1, 50, 48", narrow, wide)
    assert product_bias(calibrated(graph, "onnx"), read_target("onnx")) == 0
