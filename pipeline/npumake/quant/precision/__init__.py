"""Precision: of which type each tensor is at each place it is read, and the grids a type has.

    placement   which nodes run on the chip          asked, named  what the project wishes, by name
    plan        the types of the whole model         widening      where int16 reaches
    promotion   nodes that may be given more bits    pieced        answers made of several parts
    grids       range → scale and zero point         schemes       a vendor's words for all of it
    layers      Conv, Gemm and MatMul seen alike     sums          what is handed out in int32

It refuses to know what the samples were: that is calibration.
"""
