"""Thresholds of an int8 Sigmoid that a vendor's tool fixes, independent of the samples.

    input x in [-T, T], if only Sigmoids read x        output y in [-t, t]

Source: the form of the target, whose file names the log.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from npumake.graph import Graph, Node, Value
from npumake.quant.precision.grids import Grids, activation_grid
from npumake.quant.precision.placement import activations, is_data_movement, source_tensor
from npumake.targets.target import Target


def with_fixed_thresholds(
    graph: Graph, chip: Collection[Node], grids: Mapping[str, Grids], target: Target
) -> dict[str, Grids]:
    """`grids`, by observed tensor of the float `graph`; the `chip` nodes run on the unit."""
    fixed = dict(grids)
    if target.form is None or not target.form.sigmoid:
        return fixed
    inputs, output = (
        activation_grid(-threshold, threshold, target.activations)
        for threshold in target.form.sigmoid
    )
    for node in graph.nodes("Sigmoid"):
        if node not in chip:
            continue
        places = [(value, output) for value in node.outputs]
        places += [(x, inputs) for x in map(source_tensor, activations(node)) if _feeds_gates(x)]
        for value, narrow in places:
            if (name := str(value.name)) in fixed:
                fixed[name] = fixed[name]._replace(narrow=narrow)
    return fixed


def _feeds_gates(value: Value) -> bool:
    """Whether only Sigmoids read the tensor, also through data movement."""
    waiting = [value]
    while waiting:
        value = waiting.pop()
        readers = [use.node for use in value.uses()]
        if not readers or value.is_graph_output():
            return False
        moves = [node for node in readers if is_data_movement(node)]
        if any(node.op_type != "Sigmoid" for node in readers if node not in moves):
            return False
        waiting += (node.outputs[0] for node in moves)
    return True
