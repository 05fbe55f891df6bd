"""The postprocessor at the end of a detector: decodes boxes and suppresses overlaps, on the CPU.

    encodings, scores, anchors → TFLite_Detection_PostProcess → boxes, classes, scores, count

No chip computes it; every vendor's runtime does, from its two input tensors. The model is read up
to these. Source: tensorflow/lite/kernels/detection_postprocess.cc.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from npumake.frontends.tflite.schema import TFLiteModel, TFLiteOperator, read_network
from npumake.frontends.tflite.tensors import real, values_of

POSTPROCESS = "CUSTOM TFLite_Detection_PostProcess"


def without_postprocessor(network: TFLiteModel) -> TFLiteModel:
    """The network up to its postprocessor; the network itself without one."""
    postprocessor = _postprocessor(network)
    if postprocessor is None:
        return network
    outputs = [output for output in network.outputs if output not in postprocessor.outputs]
    outputs += [postprocessor.input(0), postprocessor.input(1)]
    left = tuple(operator for operator in network.operators if operator is not postprocessor)
    return replace(network, outputs=tuple(dict.fromkeys(outputs)), operators=left)


def anchors(data: bytes) -> np.ndarray | None:
    """The anchors of a .tflite file's postprocessor, (count, 4): y, x, height, width.

    None without such an operator. Raises MalformedError.
    """
    postprocessor = _postprocessor(read_network(data))
    return None if postprocessor is None else values_of(real(postprocessor.input(2)))


def _postprocessor(network: TFLiteModel) -> TFLiteOperator | None:
    """The postprocessor whose results are all outputs."""
    for operator in network.operators:
        if operator.type == POSTPROCESS and set(operator.outputs) <= set(network.outputs):
            return operator
    return None
