"""The activation behind a layer, as a function: a ReLU or clamp, SiLU, hard-swish and their like.

A gate, such as the Sigmoid of scores or of squeeze-and-excitation, is none: its output multiplies
another tensor, or leaves the model.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from npumake.engine.functions import FUNCTIONS
from npumake.engine.fusion import absorbed, bounds
from npumake.graph import Node, producer
from npumake.graph.qdq import readers_past_pairs, tensor_before_pairs

Activation = Callable[[np.ndarray], np.ndarray]

ACTIVATIONS = frozenset({"Elu", "Gelu", "HardSwish", "LeakyRelu", "Mish", "Swish"})
GATES = frozenset({"HardSigmoid", "Sigmoid"})  # of x * gate(x)


def activation_behind(layer: Node) -> Activation | None:
    """The activation of the layer's output in a graph with or without Q/DQ; None without one."""
    clamp = absorbed(layer)
    if clamp is not None:
        low, high = bounds(clamp)
        return lambda y: y if low is None and high is None else np.clip(y, low, high)
    nodes = list(dict.fromkeys(node for node, _ in readers_past_pairs(layer.outputs[0])))
    if len(nodes) == 1 and nodes[0].op_type in ACTIVATIONS:
        (node,) = nodes
        return lambda y: FUNCTIONS[node.op_type](node, y)
    gate = next((node for node in nodes if node.op_type in GATES), None)
    if gate is not None and len(nodes) == 2 and _multiplies(nodes, gate):
        return lambda y: y * FUNCTIONS[gate.op_type](gate, y)
    return None


def _multiplies(nodes: list[Node], gate: Node) -> bool:
    """Whether the other node multiplies the tensor by its own gate."""
    (other,) = (node for node in nodes if node is not gate)
    read = (tensor_before_pairs(value) for value in other.inputs if value is not None)
    return other.op_type == "Mul" and any(producer(value) is gate for value in read)
