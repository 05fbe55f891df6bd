"""int16 functions of TensorFlow Lite, code by code beside LiteRT at a real size."""

from __future__ import annotations

import numpy as np
import pytest

from compilers.files import differences, made_of
from npumake.graph import parse_text
from npumake.project.sections import Quantization

WIDE = Quantization(types={"*": "int16"})
HEADER = '<ir_version: 9, opset_import: ["" : 20]> agraph'


@pytest.mark.parametrize("function", ["Softmax", "Sigmoid", "Tanh"])
@pytest.mark.parametrize("spread", [0.7, 2.3, 6.1])
def test_each_code_is_that_of_litert(function, spread):
    text = f"{HEADER} (float[512,64] x) => (float[512,64] y) {{ y = {function}(x) }}"
    x = np.random.default_rng(int(10 * spread)).normal(0, spread, (512, 64)).astype(np.float32)
    compared, others = differences(made_of(parse_text(text).with_shapes(), {"x": x}, WIDE))
    assert compared
    assert others == {}
