"""Every model of shared/data goes through the checker and becomes a file of every compiler.

A compiler takes up to a minute for one of them, so CI has every model for TensorFlow Lite, the
lighter ones for one target of Vela and for onnxruntime, and one small model for each of the others;
NPUMAKE_EVERY=1 has all of each.
Those of frozen TensorFlow are not among them: reading one takes a process of TensorFlow, and
tests/frontends has them.
"""

from __future__ import annotations

from itertools import product

import pytest

from compilers.files import MODELS, made
from frontends.test_every_real_model import graphs
from npumake.compilers.backends import built
from npumake.debug.model_check import check_model
from npumake.errors import StageError
from npumake.targets.reader import read_target, target_names
from workspaces import few

FILES = sorted(
    str(file.relative_to(MODELS))
    for suffix in (".onnx", ".prototxt", ".tflite")
    for file in MODELS.rglob(f"*{suffix}")
)
COMPILED = [name for name in target_names() if read_target(name).backend != "hybrid"]
# The HTP takes no HardSigmoid of 8 bits, and QNN ends without memory at a Conv 256 wide and at what
# an LSTM computes, in 8 bits as in float. RKNN fails at that Conv too, and takes a Conv in front of
# some Concats for one of float16, which the RV1106 has not.
SILERO = "audio/silero_vad_16k_op15.onnx"
REFUSED_BY = {
    ("qnn", "ocr/ppocr_mobile_v2_cls.onnx"): "fallback to CPU EP",
    ("qnn", SILERO): "QNN_COMMON_ERROR_MEM_ALLOC",
    ("rknn", SILERO): "KeyError: '/model/stft/",
    ("rv1106", "classification/squeezenet1.1_winml_fp16.onnx"): "not supported 'float16'",
    ("rv1106", "classification/squeezenet1.1_winml_fp32_DERIVED.onnx"): "not supported 'float16'",
    ("rv1106", "detection/fastestdet_352.onnx"): "not supported 'float16'",
    ("rv1106", "detection/sscma_yolov5tiny_face_96.onnx"): "not supported 'float16'",
    ("rv1106", "detection/yolox_person_192.onnx"): "not supported 'float16'",
}
MAGIC = {"tflite": b"TFL3", "vela": b"TFL3"}

# Targets that models up to so many bytes are always compiled for.
LIGHT = {"ethos-u55-128": 1_000_000, "onnx": 1_000_000, "tflite": 1 << 30}
SMALL = "classification/cifar10_resnet8_float.tflite"
TWIN = "iree-cortex-a53"  # compiled for as the A55 is


def is_wanted(name: str, model: str) -> bool:
    is_light = (MODELS / model).stat().st_size <= LIGHT.get(name, 0)
    return is_light or (model == SMALL and name != TWIN)


PAIRS = few(product(COMPILED, FILES), lambda pair: is_wanted(*pair))

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not MODELS.is_dir(), reason="shared/data/models is not here"),
]


@pytest.mark.parametrize(("name", "model"), PAIRS)
def test_a_model_is_checked_and_compiled(name, model):
    target = read_target(name)
    found = check_model(graphs(MODELS / model)[1], target)
    assert found.on_cpu < len(found.nodes)
    refused = REFUSED_BY.get((target.backend, model)) or REFUSED_BY.get((name, model))
    try:
        data = built(made(model).program, made(model).graph, target, {})
    except StageError as error:
        if "is not installed" in error.what:
            pytest.skip(error.what)
        if refused is None or refused not in error.what:
            raise
        return
    assert refused is None
    assert data[4:8] == MAGIC.get(target.backend, data[4:8])
