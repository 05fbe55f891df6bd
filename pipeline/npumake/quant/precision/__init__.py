"""Precision: the type of each tensor at each use, and the grids of a type.

    placement         nodes that run on the chip     type_requests, selectors  the project's rules
    precision_plan    the types of the whole model   type_propagation  where int16 spreads
    precision_candidates  nodes to promote           uneven_concat     outputs of unlike parts
    grids             range to scale and zero point  schemes           a vendor's whole-model scheme
    linear_layers     Conv, Gemm, MatMul as one      int32_outputs     layers that output int32

It does not know the samples: that is calibration.
"""
