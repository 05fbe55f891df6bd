"""Random weights in every format: the same file, the same distribution, other values."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from frontends.nets import Beside, caffemodel
from frontends.tflite_writer import Op, T, constant, written
from npumake.errors import GraphError
from npumake.frontends import FRONTENDS
from npumake.frontends.caffe.weights import TrainedBlobs
from npumake.frontends.random_weights import RANDOMIZED, with_random_weights
from npumake.frontends.tflite.schema import read_network

RNG = np.random.default_rng(3)
WEIGHT = RNG.normal(size=(8, 4, 3, 3)).astype(np.float32)
X = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4, 8, 8])
Y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)


def model(nodes: list[onnx.NodeProto], tensors: list[onnx.TensorProto]) -> bytes:
    body = helper.make_graph(nodes, "g", [X], [Y], tensors)
    opset = [helper.make_opsetid("", 17)]
    return helper.make_model(body, opset_imports=opset, ir_version=9).SerializeToString()


def named(name: str, values: np.ndarray) -> onnx.TensorProto:
    return numpy_helper.from_array(values, name)


def randomized(data: bytes, name: str = "m.onnx", beside: tuple[Beside, ...] = ()):
    return with_random_weights(data, name, beside, seed=1)


def initializers(data: bytes) -> dict[str, np.ndarray]:
    proto = onnx.load_from_string(data)
    return {each.name: numpy_helper.to_array(each) for each in proto.graph.initializer}


def is_drawn(drawn: np.ndarray, values: np.ndarray) -> bool:
    """Whether they are other values of the same range and type."""
    assert (drawn.shape, drawn.dtype) == (values.shape, values.dtype)
    assert (drawn.min(), drawn.max()) == (values.min(), values.max())
    return not np.array_equal(drawn, values)


CONV = helper.make_node("Conv", ["x", "w"], ["c"])


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("raw", [True, False])
def test_weights_of_every_float_type_however_stored(dtype: str, raw: bool) -> None:
    values = WEIGHT.astype(dtype)
    tensor = named("w", values)
    if not raw:
        kind = helper.np_dtype_to_tensor_dtype(values.dtype)
        tensor = helper.make_tensor("w", kind, values.shape, values.ravel().tolist())
    random = randomized(model([CONV], [tensor]))
    assert random.replaced == 1
    assert is_drawn(initializers(random.model)["w"], values)


STRUCTURE = {
    "Resize": (["x", "", "s"], {"s": np.array([1, 1, 2, 2], np.float32)}),
    "Clip": (["x", "low", "high"], {"low": np.float32(0), "high": np.float32(6)}),
    "Reshape": (["x", "shape"], {"shape": np.array([1, 256], np.int64)}),
    "Pad": (["x", "pads", "v"], {"pads": np.array([0, 0, 1, 1] * 2), "v": np.float32(3)}),
    "QuantizeLinear": (["x", "scale"], {"scale": np.linspace(0.1, 0.9, 4, dtype=np.float32)}),
}


@pytest.mark.parametrize("op", STRUCTURE)
@pytest.mark.parametrize("through", ["", "Identity", "Cast"])
def test_what_the_structure_depends_on_stays(op: str, through: str) -> None:
    inputs, values = STRUCTURE[op]
    nodes = [helper.make_node(op, inputs, ["y"])]
    tensors = [named(name, np.asarray(each)) for name, each in values.items()]
    if through:
        last = inputs[-1]
        to = helper.np_dtype_to_tensor_dtype(np.asarray(values[last]).dtype)
        kind = {"to": to} if through == "Cast" else {}
        nodes.insert(0, helper.make_node(through, [last], ["moved"], **kind))
        nodes[-1].input[len(inputs) - 1] = "moved"
    data = model(nodes, tensors)
    random = randomized(data)
    assert random.replaced == 0
    kept = initializers(random.model)
    assert all(np.array_equal(kept[name], each) for name, each in values.items())


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32"])
def test_codes_behind_a_dequantize_are_drawn_and_their_scale_stays(dtype: str) -> None:
    codes = RNG.integers(0, 100, (8, 4, 3, 3)).astype(dtype)
    scale = np.float32(0.1)
    nodes = [helper.make_node("DequantizeLinear", ["q", "s"], ["w"]), CONV]
    random = randomized(model(nodes, [named("q", codes), named("s", scale)]))
    drawn = initializers(random.model)
    assert is_drawn(drawn["q"], codes)
    assert drawn["s"] == scale


@pytest.mark.parametrize("key", ["value", "value_floats"])
def test_the_weights_of_constant_nodes_are_drawn(key: str) -> None:
    flat = WEIGHT.ravel()
    value = named("", flat) if key == "value" else flat.tolist()
    nodes = [helper.make_node("Constant", [], ["w"], **{key: value})]
    random = onnx.load_from_string(
        randomized(model([*nodes, helper.make_node("Add", ["x", "w"], ["y"])], [])).model
    )
    (item,) = random.graph.node[0].attribute
    drawn = numpy_helper.to_array(item.t) if key == "value" else np.array(item.floats, np.float32)
    assert is_drawn(drawn, flat)


def test_weights_in_branches_are_drawn() -> None:
    inner = helper.make_graph(
        [helper.make_node("Identity", ["v"], ["o"])],
        "branch",
        [],
        [helper.make_tensor_value_info("o", TensorProto.FLOAT, None)],
        [named("v", WEIGHT)],
    )
    node = helper.make_node("If", ["c"], ["y"], then_branch=inner, else_branch=inner)
    random = randomized(model([node], [named("c", np.array(True))]))
    assert random.replaced == 2
    for item in onnx.load_from_string(random.model).graph.node[0].attribute:
        assert is_drawn(numpy_helper.to_array(item.g.initializer[0]), WEIGHT)


def test_weights_in_a_file_beside_are_drawn_there_and_nothing_else_is() -> None:
    tensor = named("w", WEIGHT)
    content = b"before" + tensor.raw_data + b"behind"
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in (("location", "w.bin"), ("offset", "6"), ("length", str(WEIGHT.nbytes))):
        tensor.external_data.add(key=key, value=value)
    random = randomized(model([CONV], [tensor]), beside=(Beside("w.bin", content),))
    content_after = random.files["w.bin"]
    assert (content_after[:6], content_after[-6:], len(content_after)) == (
        b"before",
        b"behind",
        len(content),
    )
    drawn = np.frombuffer(content_after[6:-6], np.float32).reshape(WEIGHT.shape)
    assert is_drawn(drawn, WEIGHT)


@pytest.mark.parametrize("kind", ["BFLOAT16", "INT4", "FLOAT8E4M3FN"])
def test_a_weight_that_cannot_be_drawn_is_an_error_and_never_kept(kind: str) -> None:
    number = TensorProto.DataType.Value(kind)
    tensor = helper.make_tensor("w", number, [4], [1, 2, 3, 4])
    with pytest.raises(GraphError, match="cannot be replaced"):
        randomized(model([CONV], [tensor]))


@pytest.mark.parametrize("form", ["current", "V1", "V0"])
def test_the_blobs_of_a_caffemodel_are_drawn(form: str) -> None:
    bias = RNG.normal(size=(8,)).astype(np.float32)
    weights = caffemodel({"conv": [WEIGHT, bias]}, form)
    random = randomized(b"name: 'net'", "net.prototxt", (Beside("net.caffemodel", weights),))
    assert random.replaced == 2
    after = random.files["net.caffemodel"]
    assert len(after) == len(weights)
    blobs = TrainedBlobs(after, "net").of("conv", (WEIGHT.shape, bias.shape))
    assert is_drawn(blobs[0], WEIGHT)
    assert is_drawn(blobs[1], bias)


def test_the_weights_of_a_tflite_file_are_drawn_and_its_shapes_stay() -> None:
    codes = RNG.integers(-100, 100, 64)
    tensors = [
        T((64,)),
        constant(WEIGHT.ravel()[:64]),
        T((64,)),
        constant(codes, "int8", scale=[0.1], zero_point=[0]),
        T((64,), "float32"),
        constant([8, 8], "int32"),
        T((8, 8)),
    ]
    operators = [
        Op("ADD", [0, 1], [2]),
        Op("DEQUANTIZE", [3], [4]),
        Op("RESHAPE", [4, 5], [6]),
    ]
    data = written(tensors, operators, [0], [2, 6])
    random = randomized(data, "m.tflite")
    assert random.replaced == 2
    assert len(random.model) == len(data)
    old, new = read_network(data), read_network(random.model)
    pairs = [(op.input(i).values, other.input(i).values) for op, other, i in (
        (old.operators[0], new.operators[0], 1),
        (old.operators[1], new.operators[1], 0),
        (old.operators[2], new.operators[2], 1),
    )]  # fmt: skip
    assert is_drawn(pairs[0][1], pairs[0][0])
    assert is_drawn(pairs[1][1], pairs[1][0])
    assert np.array_equal(*pairs[2])


@pytest.mark.parametrize("suffix", sorted(FRONTENDS))
def test_bytes_that_are_no_model_or_a_format_without_support_are_an_error(suffix: str) -> None:
    beside = (Beside("w.caffemodel", b"\xff\xff"),)
    with pytest.raises(GraphError) as raised:
        randomized(b"\xff\xfe not a model", f"m{suffix}", beside)
    assert (suffix in RANDOMIZED) or "can be replaced in" in raised.value.hint
