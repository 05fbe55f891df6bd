"""How close an artifact stays to the float model, node by node, and where an error comes from.

This package reports figures; gates decide in `evaluate`. The exported functions are those that
D-Robotics and Horizon document for their debuggers.
"""

from npumake.debug.functions import (
    get_channelwise_data_distribution,
    get_sensitivity_of_nodes,
    plot_acc_error,
    plot_distribution,
)
from npumake.debug.runall import runall

__all__ = [
    "get_channelwise_data_distribution",
    "get_sensitivity_of_nodes",
    "plot_acc_error",
    "plot_distribution",
    "runall",
]
