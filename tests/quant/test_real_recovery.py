"""Rescaled channels of real trained models: the function stays, whatever the layers between.

The models lie beside the repository, not in it; where they are absent this is skipped.
"""

import numpy as np
import pytest

from npumake.engine.float_session import float_session
from npumake.frontends import read_model
from npumake.graph import shape, upgraded
from npumake.passes import optimized
from npumake.quant.correction.cross_layer_equalization import equalize
from npumake.quant.correction.rescale_groups import find_rescale_groups
from workspaces import shared_data

MODELS = shared_data() / "models"
FOUND = {  # bundles: residual sums, pools, a flattened classifier; ReLU6 alone has none
    "anomaly/ad01_fp32.tflite": 9,
    "classification/cifar10_resnet8_float.tflite": 6,
    "classification/mobilenet_v1_0.25_224_float.tflite": 0,
    "classification/squeezenet1.1_winml_fp32_DERIVED.onnx": 9,
    "classification/vww_96_float.tflite": 27,
    "detection/yunet_n_320_320.onnx": 43,
}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not MODELS.exists(), reason="shared/data/models is not here"),
]


@pytest.mark.parametrize("name", FOUND)
def test_an_equalized_model_gives_the_same_answers(name):
    file = MODELS / name
    graph = optimized(upgraded(read_model(file.read_bytes(), file.name)).with_shapes())
    assert len(find_rescale_groups(graph)) == FOUND[name]
    draw = np.random.default_rng(0).integers
    feed = {str(v.name): draw(0, 256, shape(v)).astype(np.float32) for v in graph.inputs}
    before, after = (float_session(g).run(None, feed) for g in (graph, equalize(graph)))
    for a, b in zip(before, after, strict=True):
        assert np.abs(a - b).max() <= 2e-5 * np.abs(a).max()
