"""quantized: integer weights and biases in standard ONNX Q/DQ.

a grid that the chip fixes → in its place, where its arithmetic is TensorFlow Lite's
Gemm → Conv, for a chip that has only the Conv; int16 GlobalAveragePool → ReduceMean likewise
float weight behind Q/DQ → int8 codes behind DQ      bias → int32 on the accumulator's grid
outputs of a detector → as its converter has them; their grids → `outputs` of its metadata
rounding of real numbers on the chip's CPU → a mark that the integer program is made by

ONNX rounds a tie to the even code. Where a chip's CPU rounds it away from zero, the program does,
and onnxruntime, fed a number exactly between two codes, is one code off.
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
