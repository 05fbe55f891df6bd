"""Self-gated activations, x * f(x), and how a channel factor passes them.

SiLU and hard-swish let no factor through, but their product does in one operand. With x' = x / s,

    SiLU         x * Sigmoid(x) / s            = x' * Sigmoid(s * x')
    hard-swish   x * Clip(x / 6 + 1/2, 0, 1) / s = x' * Clip(s / 6 * x' + 1/2, 0, 1)

s * x' is one depthwise 1x1 Conv, whose scale per channel keeps every channel exact. The gate sees
the channels in their own size, where a small one is near f(0) and needs few codes; the product
sees them in equal size. So a SiLU whose channels starve in 8 bits (calibration.channel_imbalance)
is mended in 8 bits, for a layer of one multiply-accumulate per element.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from npumake.graph import Graph, Node, Value, attribute, producer, shape

FUSED = ("Swish", "HardSwish")  # one node computes x * f(x)
CHANNEL_AXIS = 1  # of a Conv


class SelfGate(NamedTuple):
    """x * f(x): `product` makes y, by itself or from the output of `gate`, f."""

    x: Value
    product: Node
    gate: Node | None

    @property
    def y(self) -> Value:
        return self.product.outputs[0]


def self_gate(node: Node) -> SelfGate | None:
    """The self-gated activation that `node` is part of; None for any other node."""
    if node.domain or not node.inputs or node.inputs[0] is None:
        return None
    if node.op_type in FUSED:
        return SelfGate(node.inputs[0], node, None) if _is_plain(node) else None
    if node.op_type == "Sigmoid":
        uses = [use.node for use in node.outputs[0].uses()]
        is_inside = len(uses) == 1 and not node.outputs[0].is_graph_output()
        return _product(uses[0], node) if is_inside and uses[0].op_type == "Mul" else None
    if node.op_type == "Mul":
        makers = [producer(value) for value in node.inputs if value is not None]
        gates = [maker for maker in makers if maker is not None and maker.op_type == "Sigmoid"]
        return self_gate(gates[0]) if len(gates) == 1 else None
    return None


def insert_gain(graph: Graph, activation: SelfGate, s: np.ndarray) -> None:
    """Multiplies the input of the gate by `s`, (channels,), in place; x is divided by it already.

    A fused activation becomes its gate and a product, which keeps its name.
    """
    x, product, gate = activation
    if gate is not None:
        graph.set_inputs(gate, {0: _scaled(graph, x, gate, s)})
        return
    if product.op_type == "Swish":
        opened = graph.insert(
            "Sigmoid", [_scaled(graph, x, product, s)], f"{product.name}_gate", before=product
        )
    else:
        bounds = [graph.constant(f"{product.name}_{n}", np.array(n, np.float32)) for n in (0, 1)]
        half = np.full(len(s), 0.5, np.float32)
        scaled = _scaled(graph, x, product, s / 6, half)
        opened = graph.insert("Clip", [scaled, *bounds], f"{product.name}_gate", before=product)
    graph.become(product, "Mul", [x, opened])


def _product(product: Node, gate: Node) -> SelfGate | None:
    x = gate.inputs[0]
    return SelfGate(x, product, gate) if x is not None and x in product.inputs else None


def _is_plain(node: Node) -> bool:
    return node.op_type != "Swish" or attribute(node, "alpha", 1.0) == 1.0


def _scaled(
    graph: Graph, x: Value, before: Node, s: np.ndarray, shift: np.ndarray | None = None
) -> Value:
    """x * s + shift by a depthwise Conv with windows of one element."""
    name = f"{before.name}_gain"
    weight = s.reshape(-1, *[1] * (len(shape(x)) - 1)).astype(np.float32)
    operands = {"weight": weight} | ({} if shift is None else {"bias": shift})
    constants = [graph.constant(f"{name}_{key}", values) for key, values in operands.items()]
    return graph.insert("Conv", [x, *constants], name, before=before, group=len(s))
