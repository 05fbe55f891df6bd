"""Output layers: the last layers, and all nodes behind them.

The nodes that decode a box have few operations and no sums over channels that would average
rounding errors: 8 bits of a picture 320 pixels wide are more than a pixel, a tenth of a small face.
Where the host decodes the box, the last layer's own 8 bits have the same effect.

Int16 is proposed for these nodes as far as the target has it and the node does not output int32
already. The model is not run.
"""

from __future__ import annotations

from npumake.engine.fusion import result
from npumake.graph import Graph, Node
from npumake.project.sections import Quantization
from npumake.quant.calibration.channel_imbalance import with_int16_nodes
from npumake.quant.precision.linear_layers import LINEAR_OPERATORS
from npumake.quant.precision.precision_plan import plan_precision
from npumake.quant.precision.type_propagation import WIDE
from npumake.targets.parts import takes_int16
from npumake.targets.target import Target


def output_layers(graph: Graph) -> set[Node]:
    """The nodes from which no path to an output passes another layer."""
    behind: set[Node] = set()  # those of them that are no layers
    last: set[Node] = set()
    for node in reversed(graph.nodes()):
        if {use.node for value in node.outputs for use in value.uses()} <= behind:
            last.add(node)
            if node.op_type not in LINEAR_OPERATORS:
                behind.add(node)
    return last


def int16_output_layers(
    graph: Graph, target: Target, quantization: Quantization
) -> tuple[str, ...]:
    """The names of output layers that the target would run in int16, in graph order.

    Nodes that the project names itself are left out. Raises ProjectError for an unknown name in
    `quantization`.
    """
    last = output_layers(graph)
    plan = plan_precision(graph, quantization, target)
    nodes = [n for n in plan.nodes if n in last and n not in plan.sums]
    names = [str(n.name) for n in nodes if takes_int16(n, target)]
    types = plan_precision(graph, with_int16_nodes(quantization, names), target).makes
    return tuple(str(n.name) for n in nodes if types.get(result(n)) == WIDE)
