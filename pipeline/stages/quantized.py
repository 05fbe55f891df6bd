"""quantized: integer weights and biases in standard ONNX Q/DQ.

float weight behind Q/DQ → int8 codes behind DQ      bias → int32 on the accumulator's grid
grid of an output → the `outputs` of a detector's metadata
"""

from __future__ import annotations

from pipeline.engine.twice import TWICE
from pipeline.graph import Graph
from pipeline.quant.described import describe_outputs
from pipeline.quant.integers import with_integer_weights
from pipeline.quant.seats import seated
from pipeline.targets.target import Target


def quantized(calibrated: Graph, target: Target) -> Graph:
    laid = seated(calibrated) if target.rounding == TWICE else calibrated
    graph = with_integer_weights(laid)
    describe_outputs(graph)
    return graph
