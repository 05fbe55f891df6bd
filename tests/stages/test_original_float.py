"""original_float: the preprocessing node computes (x + offset - mean) * scale, exactly once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from frontends.nets import caffemodel, inputs

from pipeline import digest
from pipeline.engine.ort import OrtSession
from pipeline.errors import GraphError, ProjectError, Route
from pipeline.graph import parse_text
from pipeline.project.files import SourceFile
from pipeline.project.sections import FilePath, Input, Model
from pipeline.quant.images import images
from pipeline.stages.original_float import original_float

NCHW = "agraph (float[1,3,2,2] x) => (float[1,3,2,2] y) { y = Relu(x) }"
NHWC = "agraph (float[1,2,2,3] x) => (float[1,2,2,3] y) { y = Relu(x) }"
OPEN = "agraph (float[N,3,H,2] x) => (float[N,3,H,2] y) { y = Relu(x) }"


def built(text: str, tmp_path: Path, **inputs: Input):  # type: ignore[no-untyped-def]
    path = tmp_path / "m.onnx"
    path.write_bytes(parse_text(text).to_bytes())
    file = SourceFile("m.onnx", str(path), digest.of_file(path))
    return original_float(Model(FilePath("m.onnx")), inputs, {"model.path": (file,)})


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
    graph = original_float(Model(FilePath("net.prototxt")), {"x0": Input(mean=2.0)}, sources)
    assert [node.op_type for node in graph.nodes()] == ["Conv", "Relu"]


def test_a_prototxt_without_weights_is_an_error_at_its_key(tmp_path: Path) -> None:
    sources = {"model.path": held(tmp_path, "net.prototxt", b"layer {}")}
    with pytest.raises(ProjectError, match=r"`net\.prototxt` holds no weights") as caught:
        original_float(Model(FilePath("net.prototxt")), {}, sources)
    assert caught.value.where == Route("model.path")


def test_weights_of_another_format_are_an_error_at_their_key(tmp_path: Path) -> None:
    sources = {
        "model.path": held(tmp_path, "m.onnx", parse_text(NCHW).to_bytes()),
        "model.weights": held(tmp_path, "net.caffemodel", b"x"),
    }
    with pytest.raises(ProjectError, match=r"`m\.onnx` holds its own weights") as caught:
        original_float(Model(FilePath("m.onnx")), {}, sources)
    assert caught.value.where == Route("model.weights")
