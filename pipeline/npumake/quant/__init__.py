"""What changes numbers: which tensors are quantized, on which grids, and the Q/DQ that says so.

    precision    of which type each tensor is            calibration  statistics → ranges
    recovery     accuracy won back                       qdq          grids → Q/DQ in the graph
    search       the best of several methods, switches and types

FLOORS is the map of this house, as `npumake.FLOORS` is of the whole: imports point down.
It refuses to know a vendor (that is `targets`, as data) and never runs a graph in integers.
"""

FLOORS = (
    ("search",),  # run, compare, keep what helps
    ("correction", "qdq"),  # float to float; float to codes
    ("calibration",),  # what the tensors do
    ("precision",),  # what is asked of them
)
