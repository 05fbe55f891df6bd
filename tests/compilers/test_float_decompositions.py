"""What TensorFlow Lite has no operator for is written out, and computes what onnxruntime does."""

from __future__ import annotations

import numpy as np
import pytest

from compilers.files import differences, made_of
from npumake.compilers.tflite import has_float, tflite_file
from npumake.engine.lower import lowered
from npumake.engine.ort import OrtSession
from npumake.errors import GraphError
from npumake.graph import parse_text
from npumake.passes import optimized
from npumake.project.sections import Quantization
from npumake.quant.precision.precision_plan import plan_precision
from npumake.runtime.litert import LiteRtSession
from npumake.targets.reader import read_target

RNG = np.random.default_rng(0)


def drawn(*shape: int) -> str:
    return "{" + ",".join(f"{number:.3f}" for number in RNG.uniform(0.5, 2.0, shape).ravel()) + "}"


def grid(*shape: int) -> str:
    return "{" + ",".join(f"{number:.2f}" for number in RNG.uniform(-1.9, 1.9, shape).ravel()) + "}"


HELD = (
    f"float[4] s4 = {drawn(4)}, float[4] b4 = {drawn(4)}, float[2] s2 = {drawn(2)}, "
    f"float[2] b2 = {drawn(2)}, float[7] g = {drawn(7)}, float[7] h = {drawn(7)}, "
    f"float[3,4,3] row = {drawn(3, 4, 3)}, float[9,3] table = {drawn(9, 3)}, "
    "float[4] v4 = {1.0,0.5,2.0,1.5}, int64[3] flat = {1,4,35}, int64[1] one = {1}, "
    "int64[1] two = {2}, int64[2] hw = {2,3}, int64[1] depth = {5}, float[2] ends = {0.0,1.0}, "
    "float[4] up = {1.0,1.0,2.0,1.2}, float[4] channels = {1.0,1.5,1.0,1.0}, "
    "int64[4] line = {1,4,5,1}, float[8] crop = {0.0,0.0,0.2,-0.3,1.0,1.0,0.7,1.4}, "
    f"float[1,2,3,2] places = {grid(1, 2, 3, 2)}, int64[4] pairs = {{1,7,10,2}}, "
    f"int64[5] volume = {{1,5,7,2,2}}, float[1,1,2,3,3] threes = {grid(1, 1, 2, 3, 3)}, "
    "float five = {5.0}, int64[3] sevens = {5,7,4}, "
    "int64[2] threefold = {70,2}, int64[3] batches = {4,35,1}, int64[4] fours = {4,5,1,7}, "
    "int64[2] most = {9,9}, float[4] half = {1.0,1.0,0.5,0.6}, "
    "int64[8] far = {0,1,6,2,0,2,0,9}, float fill = {0.7}, int64[8] deep = {0,0,3,2,0,0,2,1}"
)
LINEAR = 'y = Resize <mode = "linear", coordinate_transformation_mode = "{}">(x, {})'
CUBIC = 'y = Resize <mode = "cubic"{}>(x, {})'
ARG_MIN = "i = ArgMin <axis = {}, select_last_index = {}>(f) y = Cast <to = 1>(i)"
WINDOW = "kernel_shape = [3, 2], strides = [2, 1]"
PADS = "pads = [1, 1, 0, 1]"
# How y is made of x, of z, which is positive, and of f, which is whole; all (1, 4, 5, 7).
NODES = {
    "InstanceNormalization": "y = InstanceNormalization(x, s4, b4)",
    "InstanceNormalization of a row": "r = Reshape(x, flat) y = InstanceNormalization(r, s4, b4)",
    "GroupNormalization": "y = GroupNormalization <num_groups = 2>(x, s4, b4)",
    "LayerNormalization with all it knows": "a, m, d = "
    "LayerNormalization <axis = 2>(x, g, h) b = Mul(m, d) y = Add(a, b)",
    "LayerNormalization of computed factors": "e = Exp(g) y = LayerNormalization(x, e, h)",
    "RMSNormalization": "y = RMSNormalization(x, g)",
    "BatchNormalization that is computed": "e = Exp(s4) y = BatchNormalization(x, e, b4, b4, v4)",
    "MeanVarianceNormalization": "y = MeanVarianceNormalization(x)",
    "LpNormalization": "y = LpNormalization <axis = 1, p = 1>(x)",
    "LpNormalization of squares": "y = LpNormalization <axis = 2>(x)",
    "LRN": "y = LRN <size = 3, alpha = 0.3>(x)",
    **{f"LogSoftmax {axis}": f"y = LogSoftmax <axis = {axis}>(x)" for axis in range(-1, 4)},
    "Hardmax": "y = Hardmax <axis = 1>(x)",
    **{f"ArgMin {axis} {last}": ARG_MIN.format(axis, last) for axis in (1, 3) for last in (0, 1)},
    "ArgMax, the last": "i = ArgMax <axis = 2, keepdims = 0, "
    "select_last_index = 1>(f) y = Cast <to = 1>(i)",
    "TopK": "v, i = TopK <axis = 1>(x, two) c = Cast <to = 1>(i) y = Add(v, c)",
    "TopK, the least": "v, i = TopK <largest = 0>(x, two) c = Cast <to = 1>(i) y = Sub(v, c)",
    "OneHot": "i = Cast <to = 7>(f) y = OneHot <axis = 1>(i, depth, ends)",
    **{
        kind: f"y = {kind} <keepdims = 0>(z, hw)"
        for kind in ("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare")
    },
    "Sum": "y = Sum(x, z, f)",
    "Mean": "y = Mean(x, z, f, x)",
    **{
        f"{kind}": f"c = Tanh(x) y = {kind}(c)"
        for kind in ("Asinh", "Atanh", "Celu", "Cosh", "Round", "Selu", "Sign", "Sinh", "Tan")
    },
    "Acosh": "c = Add(z, g) d = Add(c, h) y = Acosh(d)",
    "Shrink": "y = Shrink <lambd = 0.4, bias = 0.1>(x)",
    "Swish": "y = Swish <alpha = 0.7>(x)",
    "ThresholdedRelu": "y = ThresholdedRelu <alpha = 0.4>(x)",
    "a dilated MaxPool": f"y = MaxPool <{WINDOW}, dilations = [2, 3], {PADS}>(x)",
    "AveragePool of pads that do not count": f"y = AveragePool <{WINDOW}, {PADS}>(x)",
    "a dilated AveragePool": f"y = AveragePool <{WINDOW}, dilations = [1, 3], {PADS}>(x)",
    "AveragePool that hangs over": f"y = AveragePool <{WINDOW}, "
    f"ceil_mode = 1, count_include_pad = 1, {PADS}>(x)",
    "LpPool": f"y = LpPool <{WINDOW}, p = 3, {PADS}>(x)",
    "Conv of a row": "r = Reshape(x, flat) y = Conv <strides = [2], pads = [1, 0]>(r, row)",
    "ConvTranspose of a row": "r = Reshape(x, flat) t = Slice(r, one, two, one) "
    "e = Concat <axis = 1>(t, t, t) y = ConvTranspose <strides = [2], pads = [1, 0]>(e, row)",
    "pools of a row": "r = Reshape(x, flat) a = MaxPool <kernel_shape = [3], pads = [1, 1]>(r) "
    "y = AveragePool <kernel_shape = [3], strides = [2], pads = [1, 1]>(a)",
    "Pad with a number": "y = Pad(x, deep, fill)",
    "Pad with an edge": 'y = Pad <mode = "edge">(x, far)',
    "Pad that mirrors": 'y = Pad <mode = "reflect">(x, deep)',
    "Pad that wraps": 'y = Pad <mode = "wrap">(x, far)',
    "linear to one column": LINEAR.format("pytorch_half_pixel", ", , line"),
    "linear at a scale": LINEAR.format("half_pixel", ", up"),
    "linear, symmetric": LINEAR.format("half_pixel_symmetric", ", up"),
    "linear, asymmetric": LINEAR.format("asymmetric", ", up"),
    "linear of channels": LINEAR.format("half_pixel", ", channels"),
    "linear of a crop": LINEAR.format("tf_crop_and_resize", "crop, , line"),
    "linear with antialias": 'y = Resize <mode = "linear", antialias = 1>(x, , half)',
    "linear that keeps the aspect ratio": 'y = Resize <mode = "linear", '
    'axes = [2, 3], keep_aspect_ratio_policy = "not_larger">'
    "(x, , , most)",
    "cubic": CUBIC.format("", ", up"),
    "cubic that leaves out": CUBIC.format(", exclude_outside = 1, cubic_coeff_a = -0.5", ", half"),
    **{
        f"GridSample, {mode}, {pad}, {corners}": f'y = GridSample <mode = "{mode}", '
        f'padding_mode = "{pad}", align_corners = {corners}>(x, places)'
        for mode, pad, corners in (
            *(("linear", "zeros", 0), ("linear", "border", 1), ("linear", "reflection", 0)),
            *(("nearest", "border", 0), ("nearest", "reflection", 1), ("cubic", "zeros", 1)),
        )
    },
    **{
        f"GridSample at a computed grid, {mode}, {pad}, {corners}": "p = Reshape(x, pairs) "
        f'y = GridSample <mode = "{mode}", padding_mode = "{pad}", align_corners = {corners}>(z, p)'
        for mode, pad, corners in (
            *(("linear", "zeros", 1), ("linear", "border", 0), ("linear", "reflection", 1)),
            *(("nearest", "zeros", 0), ("nearest", "reflection", 0), ("cubic", "zeros", 0)),
        )
    },
    "GridSample of a volume": "v = Reshape(x, volume) y = GridSample(v, threes)",
    **{
        f"GatherElements at computed indices, axis {axis}": "i = Cast <to = 7>(f) "
        f"y = GatherElements <axis = {axis}>(x, i)"
        for axis in (2, -2)
    },
    "GatherElements from the end": "m = Sub(f, five) i = Cast <to = 6>(m) "
    "y = GatherElements <axis = 3>(x, i)",
    "GatherND at computed indices": "c = Cast <to = 7>(f) i = Reshape(c, threefold) "
    "r = Reshape(x, sevens) y = GatherND(r, i)",
    "GatherND from the end, in batches": "m = Sub(f, five) c = Cast <to = 7>(m) "
    "i = Reshape(c, batches) r = Reshape(x, fours) y = GatherND <batch_dims = 1>(r, i)",
    "nearest of channels": "y = Resize(x, , channels)",
    "nearest where no flag reads": 'y = Resize <coordinate_transformation_mode = "asymmetric", '
    'nearest_mode = "round_prefer_ceil">(x, , up)',
}
OPSETS = {"GroupNormalization": 21, "RMSNormalization": 23, "Swish": 24}
FED = {
    "x": RNG.normal(size=(1, 4, 5, 7)).astype(np.float32),
    "z": RNG.uniform(0.5, 2, (1, 4, 5, 7)).astype(np.float32),
    "f": RNG.integers(0, 5, (1, 4, 5, 7)).astype(np.float32),
}


def graph_of(name: str):
    """Of the case, all in float."""
    header = f'<ir_version: 9, opset_import: ["" : {OPSETS.get(name, 20)}]> agraph'
    fed = [key for key in FED if f"({key}" in NODES[name] or f" {key}" in NODES[name]]
    made = "float[1,4,5,7]" if name == "GroupNormalization" else "float[]"  # onnx infers none
    ports = ", ".join(f"float[1,4,5,7] {key}" for key in fed)
    text = f"{header} ({ports}) => ({made} y) <{HELD}> {{ {NODES[name]} }}"
    return optimized(parse_text(text).with_shapes()), {key: FED[key] for key in fed}


def alike(made: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """An image lies NHWC where it lies as the file has it."""
    return made if made.shape == wanted.shape else np.moveaxis(made, -1, 1)


@pytest.mark.parametrize(
    "name",
    [
        # A cubic GridSample is some hundred nodes.
        pytest.param(name, marks=pytest.mark.slow) if "cubic, zeros" in name else name
        for name in NODES
    ],
)
def test_a_node_that_is_written_out_is_the_one_of_onnxruntime(name):
    pytest.importorskip("ai_edge_litert.interpreter", reason="LiteRT is not installed")
    graph, fed = graph_of(name)
    (wanted,) = OrtSession(graph.to_bytes()).run(["y"], fed)
    session = LiteRtSession(tflite_file(lowered(graph, "twice", ()), graph), "made.tflite")
    (made,) = session.run(["y"], fed)
    np.testing.assert_allclose(alike(made, wanted), wanted, rtol=1e-5, atol=1e-5)


def test_a_scale_that_is_computed_is_not_left_out():
    """A LayerNormalization without its scale would be a wrong file."""
    graph, fed = graph_of("LayerNormalization of computed factors")
    (scaled,) = OrtSession(graph.to_bytes()).run(["y"], fed)
    assert np.abs(scaled).max() > 3.0


EMBEDDING = """<ir_version: 9, opset_import: ["" : 20]> agraph (int64[2,3] i) => (float[2,3,4] y)
    <float[9,3] table = %s, float[3,4] w = %s> { e = Gather(table, i) y = MatMul(e, w) }"""


def test_an_embedding_is_read_at_the_numbers_that_are_fed():
    pytest.importorskip("ai_edge_litert.interpreter", reason="LiteRT is not installed")
    graph = parse_text(EMBEDDING % (drawn(9, 3), drawn(3, 4))).with_shapes()
    fed = {"i": np.array([[0, 8, 3], [3, 1, 7]])}
    found = made_of(graph, fed)
    (wanted,) = OrtSession(graph.to_bytes()).run(None, fed)
    (made,) = LiteRtSession(found.data, "made.tflite").run(None, fed)
    assert any(step.op.startswith("fully") for step in found.program.instructions)
    np.testing.assert_allclose(made, wanted, atol=0.03 * np.ptp(wanted))
    assert differences(found)[1] == {}


def test_what_cannot_be_at_all_is_one_error_with_another_target():
    text = """<ir_version: 9, opset_import: ["" : 20]> a (float[1,2,3,3] x, float[1,2,3,3,3] v)
        => (float[1,2] y, float[1,2,2,2,2] z, float[1,2,3,3] r) {
        r = Relu(x) y = Det(r) n = Neg(v) z = MaxPool <kernel_shape = [2, 2, 2]>(n) }"""
    graph = parse_text(text).with_shapes()
    fed = {"x": np.ones((1, 2, 3, 3), np.float32), "v": np.ones((1, 2, 3, 3, 3), np.float32)}
    with pytest.raises(GraphError, match="2 nodes cannot be in") as caught:
        made_of(graph, fed)
    assert "`y`: it has no Det" in caught.value.what
    assert "`z`: its window has 3 dimensions" in caught.value.what
    assert "quantization" not in caught.value.hint  # in float they are not there either
    assert ".hybrid" in caught.value.hint


def test_what_int8_has_not_is_float_from_the_start_and_no_error():
    """The integer engine and the file have the same nodes in float."""
    pytest.importorskip("ai_edge_litert.interpreter", reason="LiteRT is not installed")
    body = (
        "n = LeakyRelu(x) p = AveragePool <kernel_shape = [3, 2], pads = [1, 1, 0, 1]>(n) "
        'y = Resize <mode = "linear", coordinate_transformation_mode = "pytorch_half_pixel">'
        "(p, , , line)"
    )
    header = '<ir_version: 9, opset_import: ["" : 20]>'
    text = f"{header} a (float[1,4,5,7] x) => (float[1,4,5,1] y) <{HELD}> {{ {body} }}"
    graph = optimized(parse_text(text).with_shapes())
    found = made_of(graph, {"x": FED["x"]})
    in_float = {s.name for s in found.program.instructions if s.op == "onnx"}
    assert in_float == {"p", "y"}
    (wanted,) = OrtSession(graph.to_bytes()).run(None, {"x": FED["x"]})
    session = LiteRtSession(found.data, "made.tflite")
    x = FED["x"] if list(session.inputs[0].shape)[1] == 4 else np.moveaxis(FED["x"], 1, -1)
    made = alike(session.run(None, {"x": x})[0], wanted)
    np.testing.assert_allclose(made, wanted, atol=0.02 * np.ptp(wanted))


def test_a_hint_to_use_the_cpu_is_tried_before():
    """A Conv of weights that int8 does not hold once their zero point is taken off."""
    text = """<ir_version: 9, opset_import: ["" : 20]> a (float[1,1,3,3] x) => (float[1,1,3,3] y)
        <float s = {0.1}, int8 z = {3}, int8[1,1,1,1] w = {-120}, float t = {0.05},
         int8 far = {100}> {
        q = QuantizeLinear(x, s, z) r = DequantizeLinear(q, s, z) f = DequantizeLinear(w, t, far)
        c = Conv(r, f) m = QuantizeLinear(c, s, z) y = DequantizeLinear(m, s, z) }"""
    graph = parse_text(text).with_shapes()
    with pytest.raises(GraphError, match="do not fit int8") as caught:
        tflite_file(lowered(graph, "twice"), graph)
    assert has_float(graph, "c")
    assert "cpu: [c]" in caught.value.hint
    free = parse_text(text).with_shapes()
    found = tflite_file(lowered(free, "twice", ("Relu",)), free)
    assert LiteRtSession(found, "made.tflite").input_names == ("x",)


def test_a_form_that_int8_has_not_is_noted():
    text = """<ir_version: 9, opset_import: ["" : 20]> a (float[1,4,5,7] x) => (float[1,4,4,8] y)
        { n = Neg(x) p = AveragePool <kernel_shape = [3, 2], pads = [1, 1, 0, 1]>(n) y = Neg(p) }"""
    graph = parse_text(text).with_shapes()
    notes = plan_precision(graph, Quantization(), read_target("tflite")).notes
    assert any("no 8 bits of this form: p (AveragePool)" in note for note in notes)
    assert plan_precision(graph, Quantization(), read_target("ara240")).notes == ()
