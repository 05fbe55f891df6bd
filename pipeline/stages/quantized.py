"""quantized: integer weights and biases in standard ONNX Q/DQ.

float weight behind Q/DQ → int8 codes behind DQ      bias → int32 on the accumulator's grid
"""

from __future__ import annotations

from pipeline.graph import Graph
from pipeline.quant.integers import with_integer_weights


def quantized(calibrated: Graph) -> Graph:
    return with_integer_weights(calibrated)
