"""A .tflite computes in LiteRT, tensor by tensor and bit by bit, what the reference engine does."""

from __future__ import annotations

import numpy as np
import onnx
import PIL.Image
import pytest

from compilers.files import MODELS, differences, made, made_of
from draws import drawn_pairs
from frontends.test_every_real_model import feeds, graphs
from npumake.compilers.tflite import tflite_file
from npumake.engine.exact import ExactSession
from npumake.engine.lower import lowered
from npumake.engine.ort import OrtSession
from npumake.frontends.tflite.schema import read_network
from npumake.graph import parse, parse_text
from npumake.passes import optimized
from npumake.passes.unroll_recurrent import unroll_recurrent
from npumake.project.sections import Quantization
from npumake.quant.qdq.insert import DEFAULT
from npumake.runtime.litert import LiteRtSession
from workspaces import few

# Of each model: the tensors of codes in its file, and how many TRANSPOSE are in it.
REAL = {
    "anomaly/ad01_fp32.tflite": 0,
    "audio/kws_tiny_float.tflite": 0,
    "audio/silero_vad_16k_op15.onnx": 0,
    "classification/cifar10_resnet8_float.tflite": 0,
    "classification/mnist_cntk.onnx": 1,
    "classification/mobilenet_v1_0.25_224_float.tflite": 0,
    "classification/squeezenet1.1_winml_fp32_DERIVED.onnx": 0,
    "classification/vww_96_float.tflite": 0,
    "detection/caffe_mtcnn_det2.prototxt": 1,
    "detection/fastestdet_352.onnx": 46,
    "detection/sscma_yolov5tiny_face_96.onnx": 6,
    "detection/ultraface_slim320.onnx": 0,
    "detection/yolox_person_192.onnx": 5,
    "detection/yunet_n_320_320.onnx": 0,
    "ocr/ppocr_mobile_v2_cls.onnx": 0,
    "segmentation/deeplabv3_mnv2_257.onnx": 0,
}
# Quantized as they come, one of them to uint8.
LOADED = [
    "audio/kws_tiny_int8.tflite",
    "classification/cifar10_resnet8_int8.tflite",
    "classification/mobilenet_v1_0.25_224_quant.tflite",
    "classification/vww_96_int8.tflite",
]
ALL_WIDE = {"*": "int16"}
EVERY_OTHER: dict[str, str] = {}
WIDE = [
    "anomaly/ad01_fp32.tflite",
    "audio/kws_tiny_float.tflite",
    "classification/cifar10_resnet8_float.tflite",
    "classification/mobilenet_v1_0.25_224_float.tflite",
    "detection/sscma_yolov5tiny_face_96.onnx",
    "detection/yunet_n_320_320.onnx",
    "ocr/ppocr_mobile_v2_cls.onnx",
    "segmentation/deeplabv3_mnv2_257.onnx",
]
BRIEF = (*WIDE[:4], "detection/yunet_n_320_320.onnx")
every_model = pytest.mark.parametrize("model", REAL)
needs_models = pytest.mark.skipif(not MODELS.is_dir(), reason="shared/data/models is not here")


@pytest.mark.slow
@needs_models
@every_model
def test_every_layer_of_a_real_model_is_the_same_bit_for_bit(model):
    compared, wrong = differences(made(model))
    assert wrong == {}
    assert compared > 3


@pytest.mark.slow
@needs_models
def test_in_full_mode_a_detector_that_slices_its_image_is_fed_codes():
    graph = graphs(MODELS / "detection/yolox_person_192.onnx")[1]
    found = made_of(graph, feeds(graph), Quantization(mode="full"))
    (image,) = read_network(found.data).inputs
    assert (image.dtype, image.shape) == ("int8", (1, 192, 192, 3))
    assert differences(found)[1] == {}


@pytest.mark.slow
@needs_models
@pytest.mark.parametrize("model", LOADED)
def test_every_layer_of_a_loaded_file_is_the_same_bit_for_bit(model):
    found = made(model)
    compared, wrong = differences(found)
    assert wrong == {}
    assert compared > 10
    assert {tensor.dtype for tensor in found.program.tensors.values()} == {"int8", "float32"}


@pytest.mark.slow
@needs_models
def test_a_file_of_uint8_keeps_its_classes_as_int8():
    """Weights alone are rounded anew."""
    graph = graphs(MODELS / "classification/mobilenet_v1_0.25_224_quant.tflite")[1]
    found = made("classification/mobilenet_v1_0.25_224_quant.tflite")
    given, ours = OrtSession(graph.to_bytes()), ExactSession(found.program)
    files = sorted((MODELS.parent / "images/imagenet500").glob("*.[jJ]*"))[:40]
    same = 0
    for file in files:
        image = PIL.Image.open(file).convert("RGB").resize((224, 224))
        x = np.asarray(image, np.float32)[None] / 128 - 1
        fed = {ours.input_names[0]: x}
        (wanted,), (scores,) = given.run(None, fed), ours.run(None, fed)
        same += int(wanted.argmax() == scores.argmax())
    assert same >= 37


@pytest.mark.slow
@needs_models
@pytest.mark.parametrize("types", [ALL_WIDE, EVERY_OTHER], ids=["int16", "mixed"])
@pytest.mark.parametrize("model", few(WIDE, BRIEF.__contains__))
def test_every_layer_in_16_bits_is_the_same_bit_for_bit(model, types):
    graph = graphs(MODELS / model)[1]
    names = [str(node.name) for node in graph.nodes()]
    chosen = types or dict.fromkeys(names[::2], "int16")
    compared, wrong = differences(made_of(graph, feeds(graph), Quantization(types=chosen)))
    assert wrong == {}
    assert compared > 3


@pytest.mark.slow
@needs_models
@every_model
def test_the_file_is_the_same_bytes_and_has_few_transposes(model):
    found = made(model)
    assert tflite_file(found.program, found.graph) == found.data
    types = [operator.type for operator in read_network(found.data).operators]
    assert types.count("TRANSPOSE") == REAL[model]


HEADER = '<ir_version: 9, opset_import: ["" : 20]> agraph'
X = (
    "(float[1,3,5,7] a) => (float[{y}] y) "
    "<float[4] s = {{1.0,1.0,2.0,2.0}}, float[3,1,1] c = {{0.5,-1.0,2.0}}, "
    "float low = {{-0.25}}, float high = {{0.4}}, int64[3] row = {{1,3,35}}, "
    "float[4,3,3] wr = {{{wr}}}, float[3,2,2,2] wt = {{{wt}}}, "
    "float[3,2,2,4] wide = {{{wide}}}, int64[1] one = {{1}}, "
    "int64[8] around = {{0,0,1,1,0,0,1,1}}, int64[8] far = {{0,0,3,0,0,0,2,2}}, "
    "int64[8] deep = {{1,3,0,0,0,0,0,0}}, int64[8] inner = {{0,2,0,0,0,2,0,0}}, "
    "int64[2] mat = {{15,7}}, int64[1] all = {{105}}, "
    "float[7,4] gw = {{{gw}}}, float[15,4] gt = {{{gt}}}, float[4] gb = {{0.5,-1.0,2.0,0.0}}, "
    "float[3,1,2,2] apart = {{{apart}}}, float[3,2,2,2] apart2 = {{{wt}}}, "
    "float fill = {{0.3}}, float beyond = {{-50.0}}, "
    "float[4] odd = {{1.0,1.5,1.0,0.7}}, "
    "float[6] six = {{0.1,-0.2,0.3,0.0,1.0,-1.0}}, float[3,1,2] line = {{{line}}}>"
)
RESIZE = 'y = Resize <mode="{}", coordinate_transformation_mode="{}", nearest_mode="{}">(x, , s)'
# The shape of y, and how it is made of x, which is on a grid.
WEIGHTS = {
    name: ",".join(f"{w:.3f}" for w in np.random.default_rng(size).normal(size=size))
    for name, size in (
        ("wr", 36),
        ("wt", 24),
        ("wide", 48),
        ("apart", 12),
        ("line", 6),
        ("gw", 28),
        ("gt", 60),
    )
}
UP = "y = ConvTranspose <strides: ints = [2, 2], pads: ints = {}>(x, wt)"
SAME = "y = ConvTranspose <strides: ints = [2, 2], pads: ints = [0, 1, 0, 1]>(x, wide)"
OPERATORS = {
    "HardSwish": ("1,3,5,7", "y = HardSwish(x)"),
    "LeakyRelu": ("1,3,5,7", "y = LeakyRelu <alpha: float = 0.3>(x)"),
    "Sigmoid": ("1,3,5,7", "y = Sigmoid(x)"),
    "Tanh": ("1,3,5,7", "y = Tanh(x)"),
    "Softmax of the channels": ("1,3,5,7", "y = Softmax <axis: int = 1>(x)"),
    "Add of a constant": ("1,3,5,7", "y = Add(x, c)"),
    "Sub": ("1,3,5,7", "z = Sigmoid(x) y = Sub(x, z)"),
    "Mul": ("1,3,5,7", "z = Sigmoid(x) y = Mul(x, z)"),
    "Concat": ("1,6,5,7", "z = Sigmoid(x) y = Concat <axis: int = 1>(x, z)"),
    "Concat of a constant": (
        "3,1,36",
        "r = Reshape(x, row) t = Transpose <perm: ints = [1, 0, 2]>(r) "
        "y = Concat <axis: int = 2>(t, c)",
    ),
    "Concat of a constant that is added too": (
        "3,1,36",
        "r = Reshape(x, row) t = Transpose <perm: ints = [1, 0, 2]>(r) u = Add(t, c) "
        "y = Concat <axis: int = 2>(u, c)",
    ),
    "mean of all": ("1,3,1,1", "y = GlobalAveragePool(x)"),
    "AveragePool": ("1,3,4,6", "y = AveragePool <kernel_shape: ints = [2, 2]>(x)"),
    "AveragePool of counted pads": (
        "1,3,3,4",
        "y = AveragePool <kernel_shape: ints = [3, 3], strides: ints = [2, 2], "
        "pads: ints = [1, 1, 1, 1], count_include_pad: int = 1>(x)",
    ),
    "MaxPool": (
        "1,3,5,7",
        "y = MaxPool <kernel_shape: ints = [3, 3], pads: ints = [1, 1, 1, 1]>(x)",
    ),
    "AveragePool of pads that SAME has not": (
        "1,3,3,4",
        "y = AveragePool <kernel_shape: ints = [3, 3], strides: ints = [2, 2], "
        "pads: ints = [1, 1, 1, 1]>(x)",
    ),
    "HardSigmoid": ("1,3,5,7", "y = HardSigmoid <alpha: float = 0.1666667>(x)"),
    "PRelu": ("1,3,5,7", "y = PRelu(x, c)"),
    "Relu": ("1,3,5,7", "z = Sigmoid(x) z1 = Relu(x) y = Sub(z, z1)"),
    "Clip": ("1,3,5,7", "y = Clip(x, low, high)"),
    "ConvTranspose": ("1,2,10,14", UP.format("[0, 0, 0, 0]")),
    "ConvTranspose of SAME": ("1,2,10,14", SAME),
    "ConvTranspose cut at its end": ("1,2,9,13", UP.format("[0, 0, 1, 1]")),
    "ConvTranspose that is cut": ("1,2,9,12", UP.format("[1, 1, 0, 1]")),
    "ConvTranspose in groups": (
        "1,3,10,14",
        "y = ConvTranspose <strides: ints = [2, 2], group: int = 3>(x, apart)",
    ),
    "ConvTranspose in groups of pads and a bias": (
        "1,6,9,12",
        "y = ConvTranspose <strides: ints = [2, 2], group: int = 3, pads: ints = [1, 1, 0, 1]>"
        "(x, apart2, six)",
    ),
    "ConvTranspose that is dilated": (
        "1,2,12,17",
        "y = ConvTranspose <strides: ints = [2, 2], dilations: ints = [3, 4]>(x, wt)",
    ),
    "ConvTranspose of a row, dilated and in groups": (
        "1,3,72",
        "r = Reshape(x, row) "
        "y = ConvTranspose <strides: ints = [2], dilations: ints = [3], group: int = 3>(r, line)",
    ),
    "Conv of a row": (
        "1,4,35",
        "r = Reshape(x, row) y = Conv <kernel_shape: ints = [3], pads: ints = [1, 1]>(r, wr)",
    ),
    "pools of a row": (
        "1,3,17",
        "r = Reshape(x, row) m = MaxPool <kernel_shape: ints = [3], pads: ints = [1, 1]>(r) "
        "y = AveragePool <kernel_shape: ints = [2], strides: ints = [2]>(m)",
    ),
    **{
        function: ("1,3,5,7", f"y = {function}(x)")
        for function in ("Abs", "Elu", "Erf", "Gelu", "Mish", "Neg", "Softplus", "Softsign")
    },
    "Gelu by tanh, of a Transpose": (
        "1,7,3,5",
        't = Transpose <perm: ints = [0, 3, 1, 2]>(x) y = Gelu <approximate: string = "tanh">(t)',
    ),
    "the largest of all": ("1,3,1,1", "y = GlobalMaxPool(x)"),
    "the largest of a channel": ("1,5,7", "y = ReduceMax <keepdims: int = 0>(x, one)"),
    "the place of the largest": (
        "1,1,5,7",
        "z = Tanh(x) i = ArgMax <axis: int = 1>(z) y = Cast <to: int = 1>(i)",
    ),
    "the place of the largest in a row": (
        "1,3,5",
        "z = Tanh(x) i = ArgMax <axis: int = 3, keepdims: int = 0>(z) y = Cast <to: int = 1>(i)",
    ),
    "Pad with the edge": ("1,3,7,9", 'y = Pad <mode: string = "edge">(x, around)'),
    "Pad with a far edge": ("1,3,10,9", 'y = Pad <mode: string = "edge">(x, far)'),
    "Pad with the edge, of channels too": ("2,6,5,7", 'y = Pad <mode: string = "edge">(x, deep)'),
    "Pad that mirrors": ("1,3,10,9", 'y = Pad <mode: string = "reflect">(x, far)'),
    "Pad that mirrors channels": ("1,7,5,7", 'y = Pad <mode: string = "reflect">(x, inner)'),
    "Pad with a number": ("1,3,10,9", "y = Pad(x, far, fill)"),
    "Pad with a number that no value reaches": ("2,6,5,7", "y = Pad(x, deep, beyond)"),
    "Pad that wraps": ("1,3,10,9", 'y = Pad <mode: string = "wrap">(x, far)'),
    "ConvTranspose, SAME_UPPER": (
        "1,2,10,14",
        'y = ConvTranspose <strides: ints = [2, 2], auto_pad: string = "SAME_UPPER">(x, wide)',
    ),
    "ConvTranspose, SAME_LOWER in groups": (
        "1,3,14,14",
        "y = ConvTranspose <strides: ints = [3, 2], group: int = 3, "
        'auto_pad: string = "SAME_LOWER">(x, apart)',
    ),
    "ConvTranspose of an output shape": (
        "1,2,9,15",
        "y = ConvTranspose <strides: ints = [2, 2], output_shape: ints = [9, 15]>(x, wt)",
    ),
    "a dilated MaxPool": (
        "1,3,3,6",
        "y = MaxPool <kernel_shape: ints = [3, 2], dilations: ints = [2, 3], "
        "pads: ints = [1, 1, 1, 1], strides: ints = [1, 1]>(x)",
    ),
    "nearest where no flag reads": (
        "1,4,5,4",
        'y = Resize <mode: string = "nearest", nearest_mode: string = "ceil">(x, , odd)',
    ),
    "Gemm with factors": (
        "15,4",
        "r = Reshape(x, mat) y = Gemm <alpha: float = 0.5, beta: float = -2.0>(r, gw, gb)",
    ),
    "Gemm turned": ("7,4", "r = Reshape(x, mat) y = Gemm <transA: int = 1>(r, gt, gb)"),
    "Sum and Mean": ("1,3,5,7", "z = Sigmoid(x) t = Tanh(x) m = Mean(x, z, t) y = Sum(m, x, z)"),
    "two vectors": ("", "r = Reshape(x, all) z = Sigmoid(r) y = MatMul(r, z)"),
    "Transpose": ("1,7,3,5", "y = Transpose <perm: ints = [0, 3, 1, 2]>(x)"),
    "nearest": ("1,3,10,14", RESIZE.format("nearest", "asymmetric", "floor")),
    "nearest, half pixel": (
        "1,3,10,14",
        RESIZE.format("nearest", "half_pixel", "round_prefer_floor"),
    ),
    "linear": ("1,3,10,14", RESIZE.format("linear", "half_pixel", "floor")),
    "linear, aligned": ("1,3,10,14", RESIZE.format("linear", "align_corners", "floor")),
    "linear, asymmetric": ("1,3,10,14", RESIZE.format("linear", "asymmetric", "floor")),
}


@pytest.mark.parametrize(("name", "largest"), drawn_pairs(OPERATORS, [0.5, 3.0, 40.0]))
def test_every_operator_is_the_same_bit_for_bit(name, largest):
    shape, body = OPERATORS[name]
    graph = parse_text(f"{HEADER} {X.format(y=shape, **WEIGHTS)} {{ x = LeakyRelu(a) {body} }}")
    graph = optimized(graph.with_shapes())
    values = np.random.default_rng(0).uniform(-largest, largest, (1, 3, 5, 7))
    for asked in (DEFAULT, Quantization(types=ALL_WIDE)):
        compared, wrong = differences(made_of(graph, {"a": values.astype(np.float32)}, asked))
        assert wrong == {}
        assert compared >= 2


GIVEN = {
    "one tensor, three times": "c = Conv(x, w)  y = Relu(c)  z = Identity(y)  v = Identity(y)",
    "what is fed": "y = Conv(x, w)  v = Relu(y)  z = Identity(x)",
    "what is fed, transposed": "z = Transpose <perm: ints = [0, 2, 3, 1]>(x)  c = Relu(z)"
    "  y = Transpose <perm: ints = [0, 3, 1, 2]>(c)  v = Conv(y, w)",
}


@pytest.mark.parametrize("body", GIVEN.values(), ids=GIVEN)
def test_every_output_has_its_name(body):
    text = f"{HEADER} (float[1,2,3,3] x) => (float[] y, float[] z, float[] v) "
    weight = "<float[2,2,1,1] w = {1.0,-2.0,0.5,3.0}>"
    graph = optimized(parse_text(f"{text} {weight} {{ {body} }}"))
    fed = {"x": np.random.default_rng(0).normal(size=(1, 2, 3, 3)).astype(np.float32)}
    found = made_of(graph, fed)
    compared, wrong = differences(found)
    assert wrong == {}
    assert compared
    session = LiteRtSession(found.data, "made.tflite")
    assert session.output_names == ("y", "z", "v")
    (port,) = session.inputs
    x = np.moveaxis(fed["x"], 1, -1) if list(port.shape) == [1, 3, 3, 2] else fed["x"]
    assert all(np.isfinite(answer).all() for answer in session.run(None, {"x": x}))


def test_a_constant_of_codes_in_a_concat_of_another_grid_is_the_same_bit_for_bit():
    graph = parse_text(
        f"""{HEADER} (float[1,3] a) => (float[1,5] y) <float s = {{0.1}}, int8 z = {{3}},
            int8[1,2] held = {{50,-7}}, float s2 = {{0.2}}> {{
            q = QuantizeLinear(a, s, z) d = DequantizeLinear(q, s, z)
            k = DequantizeLinear(held, s, z) c = Concat <axis: int = 1>(d, k)
            q2 = QuantizeLinear(c, s2, z) y = DequantizeLinear(q2, s2, z) }}"""
    ).with_shapes()
    compared, wrong = differences(made_of(graph, {"a": np.float32([[0.3, -1, 7]])}))
    assert wrong == {}
    assert compared


@pytest.mark.parametrize("types", [{}, ALL_WIDE], ids=["int8", "int16"])
def test_thousands_of_sums_are_the_same_bit_for_bit(types):
    """Enough of them that a rounding of another kind would show."""
    rng = np.random.default_rng(1)
    weight = rng.normal(size=(64, 512)).astype(np.float32)
    proto = onnx.helper.make_graph(
        [onnx.helper.make_node("MatMul", ["x", "w"], ["y"])],
        "g",
        [onnx.helper.make_tensor_value_info("x", 1, [64, 64])],
        [onnx.helper.make_tensor_value_info("y", 1, [64, 512])],
        [onnx.numpy_helper.from_array(weight, "w")],
    )
    opset = [onnx.helper.make_opsetid("", 20)]
    made = onnx.helper.make_model(proto, opset_imports=opset, ir_version=9)
    graph = parse(made.SerializeToString(), "made").with_shapes()
    fed = {"x": rng.normal(size=(64, 64)).astype(np.float32)}
    _, wrong = differences(made_of(graph, fed, Quantization(types=types)))
    assert wrong == {}


@pytest.mark.parametrize("function", ["Sigmoid", "Tanh"])
@pytest.mark.parametrize("largest", [0.01, 3.3, 8.0, 100.0])
def test_every_code_of_16_bits_has_its_value(function, largest):
    ports = "(float[1,65536] x) => (float[1,65536] y)"
    graph = parse_text(f"{HEADER} {ports} {{ y = {function}(x) }}").with_shapes()
    x = np.linspace(-largest, largest, 65536, dtype=np.float32)[None]
    _, wrong = differences(made_of(graph, {"x": x}, Quantization(types=ALL_WIDE)))
    assert wrong == {}


@pytest.mark.parametrize(("kind", "gates"), [("LSTM", 4), ("GRU", 3), ("RNN", 1)])
def test_an_unrolled_recurrent_node_is_the_same_bit_for_bit(kind, gates):
    rng = np.random.default_rng(3)
    w, r = (",".join(f"{x:.3f}" for x in rng.normal(size=n)) for n in (gates * 12, gates * 4))
    made, cell = (", float[1,3,2] c", ", c") if kind == "LSTM" else ("", "")
    graph = parse_text(
        f"{HEADER} (float[4,3,6] x) => (float[1,3,2] h{made}) "
        f"<float[1,{2 * gates},6] w = {{{w}}}, float[1,{2 * gates},2] r = {{{r}}}> "
        f"{{ y, h{cell} = {kind} <hidden_size: int = 2>(x, w, r) }}"
    ).with_shapes()
    assert unroll_recurrent(graph) == 1
    better, fed = optimized(graph.with_shapes()), {"x": rng.normal(size=(4, 3, 6))}
    found = made_of(better, {"x": fed["x"].astype(np.float32)})
    in_float = [step.name for step in found.program.instructions if step.op == "onnx"]
    assert {found.graph.find(name)[0].op_type for name in in_float} <= {"Reshape"}  # at the border
    compared, wrong = differences(found)
    assert wrong == {}
    assert compared > 4 * gates


def test_a_sigmoid_is_rounded_as_float32_has_it():
    """Code -52 is 76.49999577 in float64, and 76.5, so 77, in float32, as LiteRT has it."""
    text = """a (float[1,4] x) => (float[1,4] y)
        <float s = {0.022444330155849457}, int8 z = {-14}, float t = {0.00390625},
         int8 e = {-128}>
        { q = QuantizeLinear(x, s, z)  r = DequantizeLinear(q, s, z)  m = Sigmoid(r)
          n = QuantizeLinear(m, t, e)  y = DequantizeLinear(n, t, e) }"""
    steps = lowered(parse_text(text).with_shapes(), "twice").instructions
    (table,) = [step.constants["table"] for step in steps if step.op == "lookup"]
    assert table[-52 + 128] == 77 - 128
