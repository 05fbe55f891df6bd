"""What changes numbers: which tensors are quantized, on which grids, and the Q/DQ that says so.

    placement   which nodes run on the chip         observe     statistics of the tensors
    grids       range → scale and zero point        thresholds  statistics → range, by method
    qdq         grids → Q/DQ nodes in the graph      integers    float weights → int8 and int32

It refuses to know a vendor (that is `target`, as data) and never runs a quantized graph.
"""
