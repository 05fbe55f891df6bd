"""Q/DQ: a float graph whose grids are QuantizeLinear and DequantizeLinear nodes of standard ONNX.

    insert            grids to Q/DQ nodes            integers   float weights to int8 and int32
    grid_assignment   the grid of each tensor use    verify     checks each node's Q/DQ
    fixed_output_params  grids that kernels fix      merge_pairs, requantize_moves  equal pairs
    quantized_outputs outputs without DQ             float16, uint8_to_int8   other types
    gemm_as_conv, pool_as_mean                       rewrites for a chip's operators
    brought_grids     grids of a quantized model     output_metadata, converter_metadata

It chooses nothing: grids and plan are its inputs. How the two nodes are wired is `graph.qdq`.
"""
