"""ONNX from a stranger: a graph, or one GraphError that names the file."""

import random

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnxruntime import InferenceSession

from npumake.engine.ort import OrtSession
from npumake.errors import GraphError
from npumake.graph import (
    array,
    attribute,
    open_dimensions,
    parse,
    parse_text,
    shape,
    upgraded,
)
from npumake.graph.parse import _checked

TEXT = """<ir_version: 8, opset_import: ["" : 10]>
agraph (float[1,2,8,8] x) => (float[1,2] y)
    <float[2,2,1,1] w = {1, 2, 3, 4}, float[2] g = {1, 2}, float[4] s = {1, 1, 2, 2}> {
    c = Conv<auto_pad = "SAME_UPPER", strides = [2, 2]>(x, w)
    n = BatchNormalization(c, g, g, g, g)
    u = Resize<mode = "nearest">(n, s)
    a = GlobalAveragePool(u)
    f = Flatten(a)
    k = Constant<value = float[2,2] {1, 2, 3, 4}>()
    m = MatMul(f, k)
    y = Softmax(m) }"""


def proto(text: str = TEXT) -> onnx.ModelProto:
    return onnx.parser.parse_model(text)


def model(body: str, header: str = '<ir_version: 8, opset_import: ["" : 17]>') -> onnx.ModelProto:
    return proto(f"{header} agraph {body}")


def refusal(data: bytes) -> str:
    with pytest.raises(GraphError) as caught:
        parse(data, "m.onnx")
    assert caught.value.where == "m.onnx"
    return caught.value.what


def test_a_good_model_is_read():
    assert [node.op_type for node in parse(proto().SerializeToString(), "m.onnx").nodes()] == [
        "Conv", "BatchNormalization", "Resize", "GlobalAveragePool", "Flatten", "MatMul", "Softmax",
    ]  # fmt: skip


def test_a_size_of_minus_one_is_one_that_is_not_known():
    made = model("(float[N,2,8,M] x) => (float[N,2,8,M] y) { y = Relu(x) }")
    for value in (*made.graph.input, *made.graph.output):
        value.type.tensor_type.shape.dim[0].dim_value = -1
    (x,) = parse(made.SerializeToString(), "m.onnx").inputs
    assert open_dimensions(x) == "[?, 2, 8, M]"


@pytest.mark.parametrize(
    "data",
    [b"", b"\n", b"hello, world\n", b"\x89PNG\r\n\x1a\n", random.Random(0).randbytes(999)],
    ids=["empty", "newline", "text", "image", "noise"],
)
def test_what_is_no_model_is_refused(data):
    assert refusal(data).startswith("not an ONNX model: ")


@pytest.mark.parametrize("length", range(1, 400, 19))
def test_a_truncated_model_is_refused(length):
    assert refusal(proto().SerializeToString()[:-length])


def test_a_model_without_nodes_is_refused():
    empty = helper.make_model(helper.make_graph([], "g", [], []))
    assert refusal(empty.SerializeToString()) == "not an ONNX model: it holds no graph"


@pytest.mark.parametrize(
    "body",
    [
        "(float[4] x) => (float[4] y) { y = Add(x, z)  z = Abs(y) }",
        "(float[4] x, float[4] x) => (float[4] y) { y = Relu(x) }",
        "(float[4] x) => (float[4] y) { y = Relu(x)  y = Abs(x) }",
        "(float[4] x) => (float[4] y) { y = Relu(missing) }",
        "(float[4] x) => (float[4] y) { z = Relu(x) }",
        "(float[4] x) => (float[4] y) { y = NoSuchOperator(x) }",
        "(float[4] x) => (float[4] y) { y = Relu<slope = 1>(x) }",
        "(float[4] x) => (float[4] y) { y = Relu(x, x) }",
    ],
    ids=[
        "cycle", "input twice", "value twice", "nothing makes it", "output not made",
        "unknown operator", "unknown attribute", "too many inputs",
    ],
)  # fmt: skip
def test_a_graph_that_is_none_is_refused(body):
    assert refusal(model(body).SerializeToString()).startswith("not a valid ONNX model: ")


def test_two_outputs_of_one_name_are_refused():
    data = model("(float[4] x) => (float[4] y, float[4] y) { y = Relu(x) }").SerializeToString()
    assert refusal(data) == "two outputs of the model have the same name"


def in_another_file() -> TensorProto:
    return TensorProto(
        name="w",
        dims=[4],
        data_type=TensorProto.FLOAT,
        data_location=TensorProto.EXTERNAL,
        external_data=[onnx.StringStringEntryProto(key="location", value="secret")],
    )


def test_a_weight_in_another_file_is_refused():
    given = model("(float[4] x) => (float[4] y) { y = Add(x, w) }")
    given.graph.initializer.append(in_another_file())
    assert "`w` is in another file" in refusal(given.SerializeToString())


def test_a_constant_of_a_branch_in_another_file_is_refused():
    given = model("""(float[4] x, bool when) => (float[4] y) {
        y = If(when) <then_branch = yes () => (float[4] t) { t = Neg(x) },
                      else_branch = no () => (float[4] e) { e = Abs(x) }> }""")
    constant = helper.make_node("Constant", [], ["k"], value=in_another_file())
    given.graph.node[0].attribute[1].g.node.append(constant)
    assert "is in another file" in refusal(given.SerializeToString())


def test_a_weight_of_fewer_numbers_than_its_shape_is_refused():
    given = proto()
    given.graph.initializer[0].dims[0] = 3
    assert refusal(given.SerializeToString()).startswith("not a valid ONNX model: ")


def test_a_node_that_makes_nothing_is_read():
    given = model(
        "(float[4] x) => (float[4] y) { y = Relu(x) }",
        '<ir_version: 8, opset_import: ["" : 17, "mine" : 1]>',
    )
    given.graph.node.append(onnx.NodeProto(op_type="Print", domain="mine", input=["y"]))
    nodes = parse(given.SerializeToString(), "m.onnx").nodes()
    assert [node.op_type for node in nodes] == ["Relu", "Print"]


def test_a_model_that_names_no_onnx_opset_is_refused():
    header = '<ir_version: 8, opset_import: ["mine" : 1]>'
    given = model("(float[4] x) => (float[4] y) { y = mine.f(x) }", header)
    assert "opset" in refusal(given.SerializeToString())


def test_both_spellings_of_the_onnx_domain_are_one():
    header = '<ir_version: 8, opset_import: ["ai.onnx" : 17]>'
    given = model("(float[4] x) => (float[4] y) { y = Relu(x) }", header)
    assert parse(given.SerializeToString(), "m.onnx").opset == 17


def field(number: int, payload: bytes) -> bytes:
    """A length-delimited protobuf field."""
    length, size = len(payload), b""
    while length > 127:
        size, length = size + bytes([length & 127 | 128]), length >> 7
    return bytes([number << 3 | 2]) + size + bytes([length]) + payload


@pytest.mark.parametrize("levels", [10, 30, 200, 2_000])
def test_branches_inside_branches_do_not_crash(levels):
    graph = b""
    for _ in range(levels):
        branch = field(1, b"then_branch") + field(6, graph) + b"\xa0\x01\x05"
        graph = field(1, field(4, b"If") + field(5, branch)) + field(2, b"g")
    data = b"\x08\x08" + field(7, graph) + field(8, b"\x10\x11")
    assert refusal(data).startswith("not a")


@pytest.mark.slow
def test_any_damage_is_a_graph_or_one_graph_error():
    whole, rng = proto().SerializeToString(), random.Random(0)
    read = 0
    for _ in range(600):
        data = bytearray(whole)
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        try:
            upgraded(parse(bytes(data), "m.onnx")).with_shapes()
            read += 1
        except GraphError:
            pass
    assert 0 < read < 600


def test_initializers_listed_as_inputs_become_constants():
    given = model(
        "(float[2] x, float[2] w) => (float[2] y) <float[2] w = {1, 2}> { y = Mul(x, w) }",
        '<ir_version: 3, opset_import: ["" : 8]>',
    )
    graph = parse(given.SerializeToString(), "m.onnx")
    assert [value.name for value in graph.inputs] == ["x"]
    assert array(graph.nodes()[0].inputs[1]).tolist() == [1, 2]


@pytest.mark.parametrize("opset", [7, 8, 9])
@pytest.mark.parametrize("also_inputs", ["", ", float[2] w", ", float[2] w, float[2] v"])
def test_weights_of_ir_3_need_not_be_inputs_as_in_onnxruntime(opset, also_inputs):
    data = model(
        f"(float[2] x{also_inputs}) => (float[2] y) <float[2] w = {{1, 2}}, float[2] v = {{3, 4}}> "
        "{ z = Mul(x, w)  y = Add(z, v) }",
        f'<ir_version: 3, opset_import: ["" : {opset}]>',
    ).SerializeToString()
    graph = parse(data, "m.onnx")
    assert [value.name for value in graph.inputs] == ["x"]
    assert graph.model.ir_version == 3
    x = np.array([5, 6], np.float32)
    (expected,) = InferenceSession(data, providers=["CPUExecutionProvider"]).run(None, {"x": x})
    (computed,) = OrtSession(upgraded(graph).to_bytes()).run(None, {"x": x})
    assert computed.tolist() == expected.tolist() == [8, 16]


def test_a_constant_node_becomes_an_initializer():
    graph = parse_text("""agraph (float[2] x) => (float[2] y) {
        k = Constant<value = float[2] {1, 2}>()  y = Mul(x, k) }""")
    assert [node.op_type for node in graph.nodes()] == ["Mul"]
    assert array(graph.nodes()[0].inputs[1]).tolist() == [1, 2]


def test_a_node_is_called_after_what_it_makes():
    graph = parse_text("agraph (float[2] x) => (float[2] y) { a = Relu(x)  y = Abs(a) }")
    assert [node.name for node in graph.nodes()] == ["a", "y"]


def test_an_attribute_left_out_is_its_default():
    (node,) = parse_text("agraph (float[2] x) => (float[2] y) { y = Softmax(x) }").nodes()
    assert attribute(node, "axis") is None
    assert attribute(node, "axis", -1) == -1


@pytest.mark.parametrize("opset", [18, 21])
def test_a_group_normalization_is_read_and_what_stands_behind_it_has_a_shape(opset):
    size = 2 if opset == 18 else 4  # of a group, then of a channel
    held = f"<float[{size}] g = {{{','.join('1' * size)}}}>"
    body = "n = GroupNormalization<num_groups=2>(x, g, g) y = Relu(n)"
    text = f"(float[1,4,3,2] x) => (float[] y) {held} {{ {body} }}"
    header = f'<ir_version: 8, opset_import: ["" : {opset}]>'
    graph = parse(model(text, header).SerializeToString(), "m.onnx").with_shapes()
    assert shape(graph.outputs[0]) == (1, 4, 3, 2)
    types = [node.op_type for node in graph.nodes()]
    assert types[-1] == "Relu"
    assert ("GroupNormalization" in types) is (opset == 21)  # that of 18 is written in others


SPREAD = {
    "one number": ("float[1] g = {0.5}, float[1] b = {-1}", "g, b"),
    "the rank of x": ("float[1,2,1] g = {0.5, 2}, float[2] b = {1, -1}", "g, b"),
    "a node's constant": ("float[2] b = {1, -1}", "k, b"),
}


@pytest.mark.parametrize("case", SPREAD)
def test_a_scale_of_a_group_is_broadcast_as_the_operator_does_it(case):
    held, read = SPREAD[case]
    constant = "k = Constant<value_float = 0.5>() " if "k" in read else ""
    body = (
        f"{constant} n = GroupNormalization<num_groups=2>(x, {read}) r = Relu(n) "
        f"y = GroupNormalization<num_groups=2>(r, {read})"
    )
    made = model(
        f"(float[1,4,3,2] x) => (float[1,4,3,2] y) <{held}> {{ {body} }}",
        '<ir_version: 8, opset_import: ["" : 18]>',
    ).SerializeToString()
    feeds = {"x": np.random.default_rng(0).normal(size=(1, 4, 3, 2)).astype(np.float32)}
    wanted, found = (
        OrtSession(data).run(None, feeds)[0]
        for data in (made, parse(made, "m.onnx").with_shapes().to_bytes())
    )
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_an_output_without_a_shape_gets_the_one_that_is_inferred():
    made = model("(float[1,4] x) => (float[] y) { y = Relu(x) }")
    made.graph.output[0].type.tensor_type.ClearField("shape")
    graph = parse(made.SerializeToString(), "m.onnx").with_shapes()
    assert shape(graph.outputs[0]) == (1, 4)


def test_what_is_declared_for_the_checker_is_taken_back_if_it_refuses():
    made = model(
        "(float[2] x) => (float[2] y, float[2] z) <float[2] w = {1, 2}> "
        "{ y = Mul(x, w)  z = Nope(y) }",
        '<ir_version: 3, opset_import: ["" : 8]>',
    )
    made.graph.output[0].type.tensor_type.ClearField("shape")
    made.graph.output[1].ClearField("type")
    before = made.SerializeToString()
    with pytest.raises(onnx.checker.ValidationError, match="Nope"):
        _checked(made, ())
    assert made.SerializeToString() == before
