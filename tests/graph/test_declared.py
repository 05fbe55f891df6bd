"""What a file says of its tensors, and operators that onnx calls deprecated: read as it runs."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from npumake.engine.ort import OrtSession
from npumake.errors import GraphError
from npumake.graph import parse, shape, upgraded

IMAGE = np.random.default_rng(0).normal(size=(1, 4, 6, 6)).astype(np.float32)
POOLED = (1, 4, 3, 3)


def model(nodes: str, opset: int = 17, constants: str = "") -> onnx.ModelProto:
    return onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["" : {opset}]>
        agraph (float[1,4,6,6] x) => (float[1,4,3,3] y) {constants} {{ {nodes} }}""")


def output(proto: onnx.ModelProto):
    return proto.graph.output[0]


def without_shape(proto):
    output(proto).type.tensor_type.ClearField("shape")


def without_type(proto):
    output(proto).ClearField("type")


def of_no_dimension(proto):
    del output(proto).type.tensor_type.shape.dim[:]


def wrong(proto):
    output(proto).type.tensor_type.shape.dim[3].dim_value = 5


def named(proto):
    for axis, name in ((0, "batch"), (2, "H"), (3, "W")):
        output(proto).type.tensor_type.shape.dim[axis].dim_param = name


def wrong_inside(proto):
    proto.graph.value_info.append(onnx.helper.make_tensor_value_info("a", 1, [1, 4, 5, 5]))


def unknown_inside(proto):
    proto.graph.value_info.append(onnx.helper.make_tensor_value_info("a", 1, None))


@pytest.mark.parametrize(
    "change",
    [without_shape, without_type, of_no_dimension, wrong, named, wrong_inside, unknown_inside],
)
def test_shapes_are_those_that_the_operators_make(change):
    proto = model("a = Relu(x)  y = MaxPool<kernel_shape=[2,2], strides=[2,2]>(a)")
    change(proto)
    data = proto.SerializeToString()
    graph = upgraded(parse(data, "m.onnx")).with_shapes()
    assert shape(graph.outputs[0]) == POOLED
    (wanted,), (made,) = (
        OrtSession(each).run(None, {"x": IMAGE}) for each in (data, graph.to_bytes())
    )
    np.testing.assert_array_equal(made, wanted)


def test_operators_that_do_not_fit_each_other_are_refused():
    proto = model("a = Flatten(x)  y = Conv(a, x)")
    with pytest.raises(GraphError, match="the shapes of the model do not fit"):
        parse(proto.SerializeToString(), "m.onnx").with_shapes()


def test_an_output_that_is_an_initializer_is_made_by_a_node():
    proto = model("y = Relu(x)", constants="<float[2] k = {1, 2}>")
    output(proto).type.tensor_type.shape.dim[2].dim_value = 6
    output(proto).type.tensor_type.shape.dim[3].dim_value = 6
    proto.graph.output.append(onnx.helper.make_tensor_value_info("k", 1, [2]))
    graph = parse(proto.SerializeToString(), "m.onnx").with_shapes()
    assert [str(value.name) for value in graph.outputs] == ["y", "k"]
    assert graph.outputs[1].producer() is not None
    np.testing.assert_array_equal(OrtSession(graph.to_bytes()).run(["k"], {"x": IMAGE})[0], [1, 2])


BY_GROUP = "<float[2] s = {1, 3}, float[2] b = {0, 5}>"
NORMALIZED = "GroupNormalization<num_groups=2, epsilon=0.01>"
GROUPS = {
    "alone": f"y = {NORMALIZED}(x, s, b)",
    "named as a tensor": f"[r] y_sizes = Relu(x)  [y_groups] y = {NORMALIZED}(y_sizes, s, b)",
    "twice": f"a = {NORMALIZED}(x, s, b)  y = {NORMALIZED}(a, b, s)",
    "in a branch": "m = ReduceMax<keepdims=0>(x)  c = Cast<to=9>(m)  y = If(c) <"
    f"then_branch = t () => (float[1,4,6,6] p) {{ p = {NORMALIZED}(x, s, b) }}, "
    "else_branch = e () => (float[1,4,6,6] q) { q = Relu(x) }>",
}


@pytest.mark.parametrize("opset", [18, 19, 20])
@pytest.mark.parametrize("name", GROUPS)
def test_a_scale_for_each_group_stays_one(name, opset):
    proto = model(GROUPS[name], opset, BY_GROUP)
    without_shape(proto)
    data = proto.SerializeToString()
    graph = upgraded(parse(data, "m.onnx")).with_shapes()
    assert not graph.nodes("GroupNormalization")
    (wanted,), (made,) = (
        OrtSession(each).run(None, {"x": IMAGE}) for each in (data, graph.to_bytes())
    )
    np.testing.assert_allclose(made, wanted, rtol=1e-6, atol=1e-6)


def test_a_scale_for_each_channel_is_left_alone():
    constants = "<float[4] s = {1, 2, 3, 4}, float[4] b = {0, 1, 2, 3}>"
    proto = model(GROUPS["alone"], 21, constants)
    proto.ir_version = 10
    without_shape(proto)
    graph = upgraded(parse(proto.SerializeToString(), "m.onnx")).with_shapes()
    assert graph.nodes("GroupNormalization")
