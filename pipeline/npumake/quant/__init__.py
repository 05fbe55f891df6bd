"""Quantization: which tensors, with which scale and zero point.

    precision    type of each tensor use             calibration  statistics and ranges
    correction   corrections of a graph's error      qdq          Q/DQ nodes for the grids
    search       trials of methods, switches and types

FLOORS is the map of this package, as `npumake.FLOORS` is of the whole: imports point down. This
package knows no vendor (`targets` has them as data) and runs no integer graph.
"""

FLOORS = (
    ("search",),  # run trials and keep the best
    ("correction", "qdq"),  # float graph to float graph; float graph to Q/DQ graph
    ("calibration",),  # activation statistics and ranges
    ("precision",),  # types and grids
)
