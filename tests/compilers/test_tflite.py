"""A .tflite computes in LiteRT, tensor by tensor and bit by bit, what the reference engine does."""

from __future__ import annotations

import pytest
from compilers.files import MODELS, differences, made

from pipeline.compilers.tflite import tflite_file
from pipeline.frontends.tflite.schema import read_network

# Of each model: the tensors of codes in its file, and how many TRANSPOSE are in it.
REAL = {
    "anomaly/ad01_fp32.tflite": 0,
    "audio/kws_tiny_float.tflite": 0,
    "classification/cifar10_resnet8_float.tflite": 0,
    "classification/mnist_cntk.onnx": 1,
    "classification/mobilenet_v1_0.25_224_float.tflite": 0,
    "classification/squeezenet1.1_winml_fp32_DERIVED.onnx": 0,
    "classification/vww_96_float.tflite": 0,
    "detection/ultraface_slim320.onnx": 0,
}
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
@every_model
def test_the_file_is_the_same_bytes_and_has_few_transposes(model):
    found = made(model)
    assert tflite_file(found.program, found.graph) == found.data
    types = [operator.type for operator in read_network(found.data).operators]
    assert types.count("TRANSPOSE") == REAL[model]
