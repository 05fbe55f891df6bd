"""What the processor under the tests does to onnxruntime's integers."""

from __future__ import annotations

from functools import cache

import numpy as np
import onnx

from npumake.engine.ort import OrtSession


@cache
def products_saturate() -> bool:
    """Whether a sum of two products of uint8 and int8 is cut at 16 bits, as onnxruntime documents
    it for AVX2 ("Quantize ONNX models", on U8S8)."""
    graph = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> net (uint8[4, 8] x, int8[8, 16] w) '
        "=> (int32[4, 16] y) { y = MatMulInteger(x, w) }"
    )
    feeds = {"x": np.full((4, 8), 255, np.uint8), "w": np.full((8, 16), 127, np.int8)}
    (sums,) = OrtSession(graph.SerializeToString(), fusion="none").run(None, feeds)
    return bool((sums != 8 * 255 * 127).any())
