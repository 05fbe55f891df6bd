"""quantized.onnx loads in OpenVINO, and says there what it says in onnxruntime."""

import numpy as np
import pytest
from quant.test_types import NPU, X5, feeds, graph, quantized

from pipeline.engine.ort import OrtSession
from pipeline.kernels.measure import agreement
from pipeline.project.sections import Quantization

openvino = pytest.importorskip("openvino", reason="openvino is not installed")
ASKED = [{}, {"*": "int16"}, {"m": "int16"}]


@pytest.mark.parametrize("chip", [NPU, X5], ids=["asymmetric", "symmetric"])
@pytest.mark.parametrize("types", ASKED, ids=str)
def test_it_is_read_there(chip, types):
    made = quantized(graph(), chip, Quantization(types))
    model = openvino.Core().read_model(made.to_bytes())
    assert [list(port.shape) for port in model.outputs] == [[1, 2, 3, 3]]


@pytest.mark.parametrize("types", ASKED, ids=str)
def test_it_computes_the_same_there(types):
    """On a symmetric grid: OpenVINO's CPU has no Conv of int8 with a zero point."""
    made = quantized(graph(), X5, Quantization(types))
    model = openvino.Core().compile_model(openvino.Core().read_model(made.to_bytes()), "CPU")
    (wanted,) = OrtSession(made.to_bytes()).run(None, feeds()[0])
    got = np.asarray(next(iter(model(feeds()[0]).values())))
    assert agreement(wanted, got).cosine > 0.999
