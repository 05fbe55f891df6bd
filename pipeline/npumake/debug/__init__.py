"""How close an artifact stays to the float model, node by node, and which node is to blame.

It refuses to judge: cosines are reported, gates decide elsewhere. The functions here are those that
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
