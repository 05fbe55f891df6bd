"""The tail: what makes the answers, the last layers and all that is computed behind them.

What a box is decoded with has few operations and no sums over channels that would average a
rounding error away: 8 bits of a picture 320 pixels wide are more than a pixel, a tenth of a small
face. Where the box is decoded on the host, the last layer's own 8 bits do the same to it.

Proposed for int16 is the tail as far as the target has int16 for it, and does not hand out int32
already. Nothing is run.
"""

from __future__ import annotations

from npumake.engine.fusion import result
from npumake.graph import Graph, Node
from npumake.project.sections import Quantization
from npumake.quant.calibration.channel_imbalance import with_int16_nodes
from npumake.quant.precision.linear_layers import LINEAR
from npumake.quant.precision.precision_plan import plan_precision
from npumake.quant.precision.type_propagation import WIDE
from npumake.targets.target import Target


def output_layers(graph: Graph) -> set[Node]:
    """The nodes from which no way leads through a layer to an answer."""
    behind: set[Node] = set()  # of these, those that are no layers
    last: set[Node] = set()
    for node in reversed(graph.nodes()):
        if {use.node for value in node.outputs for use in value.uses()} <= behind:
            last.add(node)
            if node.op_type not in LINEAR:
                behind.add(node)
    return last


def int16_output_layers(
    graph: Graph, target: Target, quantization: Quantization
) -> tuple[str, ...]:
    """The nodes of the tail by name, in graph order, as far as they would be int16 on the target
    and the project does not say otherwise.

    Raises ProjectError for a name in `quantization` that means nothing.
    """
    last = output_layers(graph)
    plan = plan_precision(graph, quantization, target)
    nodes = [n for n in plan.nodes if n in last and n not in plan.sums]
    names = [str(n.name) for n in nodes if target.takes_int16(n.op_type)]
    types = plan_precision(graph, with_int16_nodes(quantization, names), target).makes
    return tuple(str(n.name) for n in nodes if types.get(result(n)) == WIDE)
