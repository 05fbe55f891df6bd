"""Q/DQ: a float graph that says, in standard ONNX, on which grid each tensor lies.

    insert      grids → Q/DQ nodes in the graph      integers      float weights → int8 and int32
    laid        the grid of a tensor where it is read   pairs      one Q and one DQ
    seams, seats  where neighbours meet, and what a kernel asks for
    answers     outputs that are codes               half, signed  float16; uint8 as int8
    gemm_as_conv  a Gemm for a chip that has only Conv      pool_as_mean  likewise, on int16
    loaded      grids that a model brought along     converted, described  what a file says

It refuses to choose: the grids and the plan are given to it.
"""
