"""quantized: integer weights and biases in standard ONNX Q/DQ.

    fixed output grids → in their place, if the chip uses TensorFlow Lite's arithmetic
    Gemm → Conv, for a chip that only has the Conv; int16 GlobalAveragePool → ReduceMean likewise
    float weight behind Q/DQ → int8 codes behind DQ      bias → int32 on the accumulator's grid
    outputs of a detector → in its converter's form; their grids → `outputs` of its metadata
    rounding of real values on the chip's CPU → a mark for the integer program

ONNX rounds a tie to the even code. If a chip's CPU rounds it away from zero, so does the program;
onnxruntime is then one code off for a value exactly between two codes.
"""

from __future__ import annotations

from npumake.engine.tflite_rules import TWICE
from npumake.graph import Graph, round_border
from npumake.quant.qdq.converted_outputs import as_converted
from npumake.quant.qdq.fixed_output_params import with_fixed_outputs
from npumake.quant.qdq.gemm_as_conv import gemm_as_conv
from npumake.quant.qdq.integers import with_integer_weights
from npumake.quant.qdq.output_metadata import describe_outputs
from npumake.quant.qdq.pool_as_mean import pool_as_mean
from npumake.targets.target import Target


def quantized(calibrated: Graph, target: Target) -> Graph:
    graph = with_fixed_outputs(calibrated) if target.rounding == TWICE else calibrated
    if target.gemm_as_conv:
        graph = graph.copy()
        gemm_as_conv(graph)
    graph = with_integer_weights(graph)
    pool_as_mean(graph, target)
    as_converted(graph, target)
    describe_outputs(graph)
    round_border(graph, target.border_rounding)
    return graph
