"""original_float: the preprocessing node computes (x + offset - mean) * scale, exactly once."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest

from frontends.nets import caffemodel, inputs
from npumake import digest
from npumake.borders.images import batch, images, trained_shapes
from npumake.data.chip_feed import fed_form
from npumake.engine.ort import OrtSession
from npumake.errors import GraphError, ProjectError, Route
from npumake.graph import Graph, parse_text, shape
from npumake.project.feeding import RECTANGLE, feeding
from npumake.project.files import SourceFile
from npumake.project.sections import CameraPreprocess, FilePath, Input, ModelSection
from npumake.stages.original_float import original_float
from workspaces import shared_data

NCHW = "agraph (float[1,3,2,2] x) => (float[1,3,2,2] y) { y = Relu(x) }"
NHWC = "agraph (float[1,2,2,3] x) => (float[1,2,2,3] y) { y = Relu(x) }"
OPEN = "agraph (float[N,3,H,2] x) => (float[N,3,H,2] y) { y = Relu(x) }"


PLAIN = ModelSection(FilePath("m.onnx"))


def built(model, tmp_path: Path, section: ModelSection = PLAIN, **inputs: Input):  # type: ignore[no-untyped-def]
    """original_float of a model, its bytes or its text."""
    path = tmp_path / "m.onnx"
    path.write_bytes(model if isinstance(model, bytes) else parse_text(model).to_bytes())
    file = SourceFile("m.onnx", str(path), digest.of_file(path))
    return original_float(section, inputs, {"model.path": (file,)})


@pytest.mark.parametrize(("text", "layout"), [(NCHW, "NCHW"), (NHWC, "NHWC")])
def test_it_computes_what_the_formula_says(tmp_path: Path, text: str, layout: str) -> None:
    mean, scale = (10.0, 20.0, 30.0), (0.5, 0.25, 2.0)
    graph = built(text, tmp_path, x=Input(layout=layout, mean=mean, scale=scale, offset=128))  # type: ignore[arg-type]
    shape = (1, 3, 2, 2) if layout == "NCHW" else (1, 2, 2, 3)
    pixels = np.arange(12, dtype=np.float32).reshape(shape) * 20
    spread = (3, 1, 1) if layout == "NCHW" else (3,)
    expected = (pixels - np.reshape(mean, spread)) * np.reshape(scale, spread)
    (made,) = OrtSession(graph.to_bytes()).run(None, {"x": pixels - 128})
    np.testing.assert_allclose(made, np.maximum(expected, 0), rtol=1e-5, atol=1e-4)
    assert images(graph) == {"x"}
    assert [str(value.name) for value in graph.inputs] == ["x"]


def test_an_image_in_nchw_is_preprocessed_by_one_depthwise_convolution(tmp_path: Path) -> None:
    graph = built(NCHW, tmp_path, x=Input(mean=1.0, scale=0.5, offset=128))
    assert [(n.name, n.op_type) for n in graph.nodes()] == [
        ("preprocess_x", "Conv"),
        ("y", "Relu"),
    ]


def test_without_mean_scale_and_offset_there_is_no_node(tmp_path: Path) -> None:
    assert [n.op_type for n in built(NCHW, tmp_path).nodes()] == ["Relu"]
    assert images(built(NCHW, tmp_path)) == frozenset()


def test_an_open_dimension_is_fixed_by_shape(tmp_path: Path) -> None:
    graph = built(OPEN, tmp_path, x=Input(shape=(1, 3, 4, 2)))
    (made,) = OrtSession(graph.to_bytes()).run(None, {"x": -np.ones((1, 3, 4, 2), np.float32)})
    assert made.shape == (1, 3, 4, 2)


def test_an_open_dimension_without_shape_is_an_error_at_its_input(tmp_path: Path) -> None:
    with pytest.raises(GraphError, match=r"`x` leaves a dimension open: \[N, 3, H, 2\]") as caught:
        built(OPEN, tmp_path)
    assert caught.value.where == Route("inputs.x")


@pytest.mark.parametrize("shape", [(1, 4, 4, 2), (1, 3, 4), (1, 3, 4, 3)])
def test_a_shape_that_contradicts_the_model_is_an_error(
    tmp_path: Path, shape: tuple[int, ...]
) -> None:
    with pytest.raises(ProjectError, match="does not fit input `x`"):
        built(OPEN, tmp_path, x=Input(shape=shape))


def test_values_for_another_number_of_channels_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(ProjectError, match="2 values for 3 channels") as caught:
        built(NCHW, tmp_path, x=Input(scale=(1.0, 2.0)))
    assert caught.value.where == Route("inputs.x.scale")


TWO = """agraph (float[1,3,4,4] x, float[1,4,4,3] w) => (float[1,3,4,4] y, float[1,4,4,3] z) {
    y = Relu(x)  z = Relu(w)
}"""


def test_every_input_has_settings_of_its_own(tmp_path: Path) -> None:
    graph = built(
        TWO,
        tmp_path,
        x=Input(type="rgb", fed_type="bgr", scale=0.5),
        w=Input(type="rgb", layout="NHWC", preprocess=CameraPreprocess("nv12", (8, 8), True)),
    )
    names = ["x", "w_y8", "w_uv8", *(f"w_crop_{side}" for side in RECTANGLE)]
    assert [str(value.name) for value in graph.inputs] == names
    assert images(graph) == {"x", "w_y8", "w_uv8"}
    assert trained_shapes(graph) == {"x": (1, 3, 4, 4), "w": (1, 4, 4, 3)}


def test_a_cut_model_needs_no_shape_for_an_input_nobody_reads_any_more(tmp_path: Path) -> None:
    text = """agraph (float[1,3,4,4] x, float[N] n) => (float[N] y) {
        m = Relu(x)  s = ReduceSum <keepdims = 0> (m)  y = Add(s, n)
    }"""
    model = ModelSection(FilePath("m.onnx"), outputs=("m",))
    graph = built(text, tmp_path, model, x=Input(type="rgb"))
    assert [str(value.name) for value in graph.inputs] == ["x"]
    assert [shape(value) for value in graph.outputs] == [(1, 3, 4, 4)]


def test_border_nodes_go_types_first_and_what_is_fed_is_what_is_left(tmp_path: Path) -> None:
    text = """agraph (float[1,4,4,3] x) => (float[1,48] y) {
        t = Transpose <perm = [0,3,1,2]> (x)  r = Relu(t)  f = Flatten(r)  y = Softmax(f)
    }"""
    model = ModelSection(FilePath("m.onnx"), remove_types=("Transpose",), remove_nodes=("y", "f"))
    graph = built(text, tmp_path, model, x=Input(type="rgb", scale=2.0))
    assert [node.op_type for node in graph.nodes()] == ["Conv", "Relu"]
    assert [shape(value) for value in (*graph.inputs, *graph.outputs)] == [(1, 3, 4, 4)] * 2
    with pytest.raises(ProjectError, match="inside the model") as caught:
        built(text, tmp_path, ModelSection(FilePath("m.onnx"), remove_nodes=("f",)))
    assert caught.value.where == Route("model.remove_nodes.0")


def test_several_images_per_run_are_for_models_of_one_input(tmp_path: Path) -> None:
    assert batch(built(NCHW, tmp_path, x=Input(batch=4))) == 4
    with pytest.raises(ProjectError, match="a batch of 4 for a model of 2 inputs") as caught:
        built(TWO, tmp_path, x=Input(batch=4))
    assert caught.value.where == Route("inputs.x.batch")


DATA = shared_data()


@pytest.mark.slow
@pytest.mark.skipif(not DATA.is_dir(), reason="the shared models are not here")
@pytest.mark.parametrize("fed", ["rgb", "nv12", "camera"])
def test_a_face_is_found_in_what_the_camera_gives(tmp_path: Path, fed: str) -> None:
    """The trained model on the picture itself, and behind its preprocessing on what is fed."""
    model = (DATA / "models/detection/ultraface_slim320.onnx").read_bytes()
    given = {
        "rgb": Input(type="rgb", fed_type="bgr", fed_layout="NHWC", mean=127.0, scale=1 / 128),
        "nv12": Input(type="rgb", fed_type="nv12", color_range="video", mean=127.0, scale=1 / 128),
        "camera": Input(mean=127.0, scale=1 / 128, preprocess=CameraPreprocess("nv21", None, True)),
    }[fed]
    picture = cv2.imread(str(DATA / "images/misc/face.jpg"))
    picture = cv2.resize(picture, (320, 240))[..., ::-1].transpose(2, 0, 1)[None]
    wanted = OrtSession(model).run(None, {"input": ((picture - 127.0) / 128).astype(np.float32)})
    graph = built(model, tmp_path, input=given)
    form = feeding("input", given, (1, 3, 240, 320))
    feed = fed_form((picture - 128.0).astype(np.float32), form, "input")
    made = OrtSession(graph.to_bytes()).run(None, feed)
    tolerance = 1e-5 if fed == "rgb" else 0.02  # chroma of half size is another picture
    for a, b in zip(wanted, made, strict=True):
        cosine = np.vdot(a, b) / np.linalg.norm(a) / np.linalg.norm(b)
        assert cosine >= 1 - tolerance


def held(folder: Path, name: str, data: bytes) -> tuple[SourceFile, ...]:
    path = folder / name
    path.write_bytes(data)
    return (SourceFile(name, str(path), digest.of_file(path)),)


def test_a_prototxt_is_read_with_its_weights(tmp_path: Path) -> None:
    text = inputs((1, 3, 2, 2)) + 'layer { name: "r" type: "ReLU" bottom: "x0" top: "y" }'
    sources = {
        "model.path": held(tmp_path, "net.prototxt", text.encode()),
        "model.weights": held(tmp_path, "net.caffemodel", caffemodel({"c": [np.zeros(1)]})),
    }
    graph = original_float(ModelSection(FilePath("net.prototxt")), {"x0": Input(mean=2.0)}, sources)
    assert [node.op_type for node in graph.nodes()] == ["Conv", "Relu"]


def test_a_prototxt_without_weights_is_an_error(tmp_path: Path) -> None:
    text = inputs((1, 3, 2, 2)) + 'layer { name: "r" type: "ReLU" bottom: "x0" top: "y" }'
    sources = {"model.path": held(tmp_path, "net.prototxt", text.encode())}
    with pytest.raises(GraphError, match="one file of weights; the project names 0") as caught:
        original_float(ModelSection(FilePath("net.prototxt")), {}, sources)
    assert "weights: net.caffemodel" in caught.value.hint


def test_weights_of_a_format_that_holds_its_own_are_an_error_at_their_key(tmp_path: Path) -> None:
    sources = {
        "model.path": held(tmp_path, "m.tflite", b"x"),
        "model.weights": held(tmp_path, "net.caffemodel", b"x"),
    }
    with pytest.raises(ProjectError, match=r"`m\.tflite` holds its own weights") as caught:
        original_float(ModelSection(FilePath("m.tflite")), {}, sources)
    assert caught.value.where == Route("model.weights")


def reshaped(tmp_path: Path, dims: tuple[int, ...]) -> Graph:
    """A convolution and an inner product over all of its 2 x 4 x 4 outputs, fed `dims`."""
    text = inputs((1, 3, 6, 6)) + (
        'layer { name: "c" type: "Convolution" bottom: "x0" top: "c" '
        "convolution_param { num_output: 2 kernel_size: 3 bias_term: false } }"
        'layer { name: "f" type: "InnerProduct" bottom: "c" top: "f" '
        "inner_product_param { num_output: 5 bias_term: false } }"
    )
    weights = {"c": [np.ones((2, 3, 3, 3))], "f": [np.ones((5, 32))]}
    sources = {
        "model.path": held(tmp_path, "net.prototxt", text.encode()),
        "model.weights": held(tmp_path, "net.caffemodel", caffemodel(weights)),
    }
    return original_float(
        ModelSection(FilePath("net.prototxt")), {"x0": Input(shape=dims)}, sources
    )


def test_a_caffe_network_is_reshaped_for_its_inputs(tmp_path: Path) -> None:
    graph = reshaped(tmp_path, (4, 3, 6, 6))
    assert [tuple(value.shape or ()) for value in graph.outputs] == [(4, 5)]


def test_a_shape_the_weights_do_not_fit_is_an_error_at_its_key(tmp_path: Path) -> None:
    with pytest.raises(
        GraphError, match=r"shape \[1, 3, 7, 6\] does not fit the network"
    ) as caught:
        reshaped(tmp_path, (1, 3, 7, 6))
    assert caught.value.where == Route("inputs.x0.shape")
    assert caught.value.hint == "`net.prototxt` itself has [1, 3, 6, 6]"
