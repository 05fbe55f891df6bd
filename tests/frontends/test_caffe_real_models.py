"""Real Caffe networks compute what they compute elsewhere.

They lie beside the repository, not in it; where they are absent this is skipped.
"""

import numpy as np
import pytest

from frontends.layers import convolved, pooled, softmax
from frontends.nets import Beside
from npumake.engine.ort import OrtSession
from npumake.frontends import read_model
from npumake.graph import Graph, array
from npumake.passes import optimized
from workspaces import shared_data

MODELS = shared_data() / "models" / "detection"
IMAGES = shared_data() / "images" / "misc"

pytestmark = pytest.mark.skipif(not MODELS.is_dir(), reason="shared/data/models is not here")


def caffe(name: str) -> Graph:
    text, weights = (MODELS / f"{name}{suffix}" for suffix in (".prototxt", ".caffemodel"))
    return read_model(text.read_bytes(), text.name, [Beside(weights.name, weights.read_bytes())])


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    a, b = (x.astype(np.float64).ravel() for x in (a, b))
    return float(a @ b / np.sqrt((a @ a) * (b @ b)))


def faces() -> list[np.ndarray]:
    """Noise, then real images as the face detector wants them: (1, 3, 240, 320), about -1..1."""
    cv2 = pytest.importorskip("cv2", reason="OpenCV reads the images")
    files = sorted(IMAGES.glob("*.jpg"))[:6]
    assert files
    pixels = [cv2.resize(cv2.imread(str(file)), (320, 240))[..., ::-1] for file in files]
    images = [((x.transpose(2, 0, 1)[None] - 127.0) / 128).astype(np.float32) for x in pixels]
    return [np.random.default_rng(0).normal(size=(1, 3, 240, 320)).astype(np.float32), *images]


@pytest.mark.parametrize("better", [False, True], ids=["as read", "optimized"])
def test_ultraface_is_the_network_its_onnx_twin_is(better):
    graph = caffe("caffe_ultraface_slim320")
    here = OrtSession((optimized(graph) if better else graph).to_bytes())
    there = OrtSession((MODELS / "ultraface_slim320_rawhead.onnx").read_bytes())
    for x in faces():
        for name in ("boxes", "scores"):
            (a,), (b,) = (session.run([name], {"input": x}) for session in (here, there))
            assert cosine(a, b) >= 0.9999999
            np.testing.assert_allclose(a, b, atol=5e-5)


def test_det1_is_its_layers_one_by_one():
    """Convolution, PReLU, Pooling and Softmax of the whole of MTCNN's first network."""
    graph = caffe("caffe_mtcnn_det1")
    w = {
        name: value.const_value.numpy()
        for name, value in graph.values().items()
        if value.const_value is not None
    }
    x = np.random.default_rng(1).normal(size=(1, 3, 12, 12)).astype(np.float32)
    y = x.astype(np.float64)
    for n in (1, 2, 3):
        y = convolved(y, w[f"conv{n}_weight"], w[f"conv{n}_bias"])
        y = np.where(y > 0, y, y * w[f"PReLU{n}_slope"])
        y = pooled(y, 2, 2, 0, "max")[0] if n == 1 else y
    boxes = convolved(y, w["conv4-2_weight"], w["conv4-2_bias"])
    faces = softmax(convolved(y, w["conv4-1_weight"], w["conv4-1_bias"]), 1)
    got = OrtSession(graph.to_bytes()).run(["conv4-2", "prob1"], {"data": x})
    np.testing.assert_allclose(got[0], boxes, atol=1e-6)
    np.testing.assert_allclose(got[1], faces, atol=1e-6)


def test_det2_rounds_its_pooling_up_and_flattens_into_its_inner_products():
    graph = caffe("caffe_mtcnn_det2")
    shapes = {name: tuple(value.shape) for name, value in graph.values().items()}
    assert (shapes["pool1"], shapes["pool2"]) == ((1, 28, 11, 11), (1, 48, 4, 4))
    graph.expose(["conv3", "conv4_before_prelu4", "prob1"])
    x = np.random.default_rng(2).normal(size=(1, 3, 24, 24)).astype(np.float32)
    before, after, faces = OrtSession(graph.to_bytes()).run(None, {"data": x})
    weight, bias = (array(graph.values()[f"conv4_{label}"]) for label in ("weight", "bias"))
    np.testing.assert_allclose(after, before.reshape(1, -1) @ weight.T + bias, atol=1e-5)
    assert faces.sum() == pytest.approx(1, abs=1e-6)
