"""quantized.onnx loads in OpenVINO, and says there what it says in onnxruntime."""

import numpy as np
import pytest

from npumake.engine.ort import OrtSession
from npumake.kernels.measure import agreement
from npumake.project.sections import Quantization
from quant.test_types import NPU, X5, feeds, graph, quantized

openvino = pytest.importorskip("openvino", reason="openvino is not installed")
ASKED = [{}, {"*": "int16"}, {"m": "int16"}]
# In bfloat16, where the CPU has that, it has no Conv of int8 with a zero point.
IN_FLOAT32 = {"INFERENCE_PRECISION_HINT": "f32"}

chips = pytest.mark.parametrize("chip", [NPU, X5], ids=["asymmetric", "symmetric"])


@chips
@pytest.mark.parametrize("types", ASKED, ids=str)
def test_it_is_read_there(chip, types):
    made = quantized(graph(), chip, Quantization(types))
    model = openvino.Core().read_model(made.to_bytes())
    assert [list(port.shape) for port in model.outputs] == [[1, 2, 3, 3]]


@chips
@pytest.mark.parametrize("types", ASKED, ids=str)
def test_it_computes_the_same_there(chip, types):
    made = quantized(graph(), chip, Quantization(types))
    core = openvino.Core()
    model = core.compile_model(core.read_model(made.to_bytes()), "CPU", IN_FLOAT32)
    (wanted,) = OrtSession(made.to_bytes()).run(None, feeds()[0])
    got = np.asarray(next(iter(model(feeds()[0]).values())))
    assert agreement(wanted, got).cosine > 0.999
