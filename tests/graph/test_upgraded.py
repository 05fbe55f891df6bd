"""Old opsets: upgraded, a model computes what it did."""

import numpy as np
import onnx
import pytest

from pipeline.engine.ort import OrtSession
from pipeline.errors import GraphError
from pipeline.graph import parse, parse_text, upgraded
from pipeline.graph.parse import WORKING_OPSET

IMAGE = (1, 2, 6, 8)


def old(opset: int, body: str, constants: str = "") -> bytes:
    """A model of one image x and one output y; its constants are inputs too, as they were then."""
    inputs = "".join(f", {line.split('=')[0]}" for line in constants.split(";") if line)
    given = ", ".join(filter(None, constants.split(";")))
    return onnx.parser.parse_model(f"""<ir_version: 3, opset_import: ["" : {opset}]>
        agraph (float[1,2,6,8] x{inputs}) => (float[A,B,C,D] y) <{given}> {{ {body} }}
    """).SerializeToString()


def assert_kept(data: bytes) -> None:
    image = {"x": np.random.default_rng(0).normal(size=IMAGE).astype(np.float32)}
    graph = upgraded(parse(data, "old.onnx"))
    assert graph.opset == WORKING_OPSET
    (before,) = OrtSession(data).run(None, image)
    (after,) = OrtSession(graph.with_shapes().to_bytes()).run(None, image)
    np.testing.assert_allclose(after, before, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("opset", [7, 9, 10, 11, 12])
@pytest.mark.parametrize(
    "body",
    [
        "y = BatchNormalization(x, g, g, g, g)",
        "y = Dropout(x)",
        "y = Softmax<axis = 1>(x)",
        "y = Softmax<axis = 2>(x)",
        'y = MaxPool<auto_pad = "SAME_LOWER", kernel_shape = [2,3], strides = [2,2]>(x)',
        "u = Unsqueeze<axes = [0]>(x)  s = ReduceSum<axes = [3], keepdims = 0>(u)  y = Relu(s)",
        "a, b = Split<axis = 3, split = [3, 5]>(x)  y = Concat<axis = 3>(b, a)",
    ],
    ids=lambda body: body.split("(")[0].split("<")[0].split(" = ")[1],
)
def test_an_old_operator_keeps_its_output(opset, body):
    assert_kept(old(opset, body, "float[2] g = {0.5, 2}"))


@pytest.mark.parametrize("opset", [7, 9])
def test_attributes_that_became_inputs_keep_their_meaning(opset):
    assert_kept(old(opset, "y = Clip<min = -0.5, max = 0.25>(x)"))
    assert_kept(old(opset, 'y = Pad<mode = "reflect", pads = [0,0,1,2,0,0,2,1]>(x)'))
    assert_kept(old(opset, "y = Slice<axes = [3], starts = [1], ends = [-1]>(x)"))


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize("scales", ["1, 1, 2, 2", "1, 1, 1.5, 2.3", "1, 1, 3, 1"])
def test_an_upsample_reads_the_same_pixels(mode, scales):
    assert_kept(
        old(7, f'y = Upsample<mode = "{mode}", scales = [{scales.replace("1,", "1.0,")}]>(x)')
    )
    assert_kept(old(9, f'y = Upsample<mode = "{mode}">(x, s)', f"float[4] s = {{{scales}}}"))


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize("scales", ["1, 1, 1.5, 2.3", "1, 1, 0.5, 0.5", "1, 1, 0.6, 0.4"])
def test_a_resize_reads_the_same_pixels(mode, scales):
    assert_kept(old(10, f'y = Resize<mode = "{mode}">(x, s)', f"float[4] s = {{{scales}}}"))


def test_a_resize_that_no_new_mode_describes_is_refused():
    data = old(10, 'y = Resize<mode = "nearest">(x, s)', "float[4] s = {1, 1, 0.75, 1.5}")
    with pytest.raises(GraphError, match="shrinks one axis and enlarges another"):
        upgraded(parse(data, "old.onnx"))


def test_an_opset_older_than_any_converter_is_refused():
    graph = parse(old(6, "y = Relu(x)"), "old.onnx")
    with pytest.raises(GraphError) as caught:
        upgraded(graph)
    assert caught.value.what == "the model uses opset 6; the oldest supported is 7"
    assert caught.value.hint == f"export it again with opset {WORKING_OPSET} or newer"


def test_a_new_graph_is_given_back_as_it_is():
    graph = parse_text("agraph (float[2] x) => (float[2] y) { y = Relu(x) }")
    assert upgraded(graph, 17) is graph
