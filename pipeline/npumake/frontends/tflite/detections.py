"""The postprocessor at the end of a detector: boxes decoded and thinned out, on the CPU.

    encodings, scores, anchors → TFLite_Detection_PostProcess → boxes, classes, scores, count

No chip computes it, and every vendor's code does it on the board from the two tensors it reads. A
model that ends with it is read up to there.
Source: tensorflow/lite/kernels/detection_postprocess.cc.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from npumake.frontends.tflite.schema import TFLiteModel, TFLiteOperator, read_network
from npumake.frontends.tflite.tensors import real, values_of

POSTPROCESS = "CUSTOM TFLite_Detection_PostProcess"


def without_postprocessor(network: TFLiteModel) -> TFLiteModel:
    """The network that ends where its postprocessor begins; itself where it has none."""
    postprocessor = _postprocessor(network)
    if postprocessor is None:
        return network
    outputs = [output for output in network.outputs if output not in postprocessor.outputs]
    outputs += [postprocessor.input(0), postprocessor.input(1)]
    left = tuple(operator for operator in network.operators if operator is not postprocessor)
    return replace(network, outputs=tuple(dict.fromkeys(outputs)), operators=left)


def anchors(data: bytes) -> np.ndarray | None:
    """The anchors of the postprocessor in a .tflite file, (count, 4): y, x, height, width.

    None where there is no such operator. Raises MalformedError.
    """
    postprocessor = _postprocessor(read_network(data))
    return None if postprocessor is None else values_of(real(postprocessor.input(2)))


def _postprocessor(network: TFLiteModel) -> TFLiteOperator | None:
    """The one that gives nothing but outputs."""
    for operator in network.operators:
        if operator.type == POSTPROCESS and set(operator.outputs) <= set(network.outputs):
            return operator
    return None
