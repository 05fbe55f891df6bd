"""Folds computations on constants: half-precision, quantized or sparse weights, and shapes of
tensors.

    float16, codes → DEQUANTIZE → float32      sparse → DENSIFY → dense      any → SHAPE → integers
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from npumake.frontends.tflite.schema import TFLiteModel, TFLiteOperator, TFLiteTensor
from npumake.frontends.tflite.tensors import real, values_of

FOLDED = ("DEQUANTIZE", "DENSIFY", "SHAPE")


def folded(network: TFLiteModel) -> TFLiteModel:
    """The network with such tensors as constants; the network itself if there are none."""
    constants: dict[TFLiteTensor, TFLiteTensor] = {}
    left = []
    for operator in network.operators:
        inputs = tuple(tensor and constants.get(tensor, tensor) for tensor in operator.inputs)
        operator = replace(operator, inputs=inputs)
        values = _values(operator)
        if values is None:
            left.append(operator)
        else:
            output = operator.output
            constants[output] = replace(output, dtype=values.dtype.name, values=values, grid=None)
    outputs = tuple(constants.get(tensor, tensor) for tensor in network.outputs)
    return replace(network, outputs=outputs, operators=tuple(left)) if constants else network


def _values(operator: TFLiteOperator) -> np.ndarray | None:
    """The operator's result, if it is constant and has the output's shape."""
    if operator.type not in FOLDED:
        return None
    source, output = operator.input(0), operator.output
    if operator.type == "SHAPE":
        values = np.array(source.shape, output.dtype)
    elif source.values is None:
        return None
    else:
        values = values_of(source if operator.type == "DENSIFY" else real(source))
    return values if values.shape == output.shape else None
