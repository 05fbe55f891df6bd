"""Int32 outputs: layers that output their accumulators to the CPU.

The sum of x * w + b is on the grid s_x * s_w of each channel. Requantization to 8 bits would lose
precision for nothing: if only the CPU reads a layer without a fused clamp, the CPU dequantizes the
sums. Data movements behind it go to the CPU as well, unless the project requests the chip, or they
weave an image of channels.

A dilated Conv outputs only 8 bits (operator lists of D-Robotics' Bayes chips). Int16 inputs are not
documented and may overflow int32: such a layer outputs int16 instead.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from npumake.engine.fusion import absorbed, result
from npumake.graph import Graph, Node, attribute, is_float, may_have_int16, producer
from npumake.quant.precision.placement import MOVE_OPERATORS, activations
from npumake.quant.precision.type_propagation import (
    OUT,
    WIDE,
    Int16Uses,
    TensorUse,
    TypeRequests,
    propagate_int16,
    tensor_uses,
)
from npumake.targets.parts import takes_int16
from npumake.targets.target import Target

# Data movements that stay on the chip: they weave an image of channels, or repeat it. All others
# are views and copies that a host makes at no cost.
CHANNEL_TO_PIXEL_MOVES = frozenset(
    {"DepthToSpace", "Expand", "GatherElements", "GatherND", "SpaceToDepth", "Tile"}
)


class Int32Outputs(NamedTuple):
    """The layers with int32 outputs, and the data movements that leave the chip with them."""

    layers: set[Node]
    moves: set[Node]  # chip nodes that move dequantized values

    def moved(self, target: Target) -> set[Node]:
        """The moves that the chip applies to the sums of a Conv, before they are dequantized."""
        moves = set[Node]()
        for node in self.moves:
            behind = _moved_layer(node, self.moves, target)
            if behind in self.layers and behind.op_type == "Conv":
                moves.add(node)
        return moves


def _moved_layer(node: Node, moves: Collection[Node], target: Target) -> Node | None:
    """The producer of the values behind such moves; None behind any other."""
    maker: Node | None = node
    while maker is not None and maker in moves:
        if maker.op_type not in target.moved_sums or maker.inputs[0] is None:
            return None
        maker = producer(maker.inputs[0])
    return maker


def with_int32_outputs(
    graph: Graph,
    nodes: Sequence[Node],
    chip: Collection[Node],
    required: Collection[Node],
    requests: TypeRequests,
    target: Target,
) -> tuple[Int16Uses, Int32Outputs]:
    """The int16 uses among the chip's `nodes`, and their int32 outputs.

    `chip` are all nodes of the chip; `required` are those that the project puts there.
    """
    types = propagate_int16(graph, nodes, requests, target)
    sums = _int32_outputs(nodes, chip, {*required, *requests.narrow, *types.wide}, target)
    reading = [node for node in sums.layers if not types.wide.isdisjoint(tensor_uses(node))]
    if may_have_int16(graph):
        reading += _leaving(nodes, chip, sums, {*requests.narrow, *types.wide}, target)
    if not reading:
        return types, sums
    wide = requests.wide.union((node, OUT) for node in reading)
    return with_int32_outputs(
        graph, nodes, chip, required, TypeRequests(wide, requests.narrow), target
    )


def _leaving(
    nodes: Sequence[Node],
    chip: Collection[Node],
    sums: Int32Outputs,
    settled_uses: Collection[TensorUse],
    target: Target,
) -> list[Node]:
    """The nodes that output codes to the CPU, for a target whose tool uses int16 there."""
    if target.form is None or target.form.leaving != WIDE:
        return []

    def leaves(node: Node) -> bool:
        output = result(node)
        is_read = any(use.node not in chip for use in output.uses()) or output.is_graph_output()
        return is_read and is_float(output) and takes_int16(node, target)

    settled = sums.layers | sums.moves
    codes = (node for node in nodes if node not in settled and node.op_type not in target.sums)
    return [node for node in codes if (node, OUT) not in settled_uses and leaves(node)]


def _int32_outputs(
    nodes: Sequence[Node],
    chip: Collection[Node],
    settled_uses: Collection[Node | TensorUse],
    target: Target,
) -> Int32Outputs:
    """The int32 outputs; `settled_uses` holds the nodes and uses whose type or place is settled."""

    def is_sum(node: Node) -> bool:
        alone = absorbed(node) is None and max(attribute(node, "dilations", (1,))) == 1
        return node.op_type in target.sums and alone and (node, OUT) not in settled_uses

    moving = target.moved_sums or MOVE_OPERATORS - CHANNEL_TO_PIXEL_MOVES

    def is_move(node: Node) -> bool:
        return node.op_type in moving and not any(
            use in settled_uses for use in (node, *tensor_uses(node))
        )

    layers, moves = set(filter(is_sum, nodes)), set(filter(is_move, nodes))

    def is_free(node: Node) -> bool:
        return all(reader not in chip or reader in moves for reader in _readers(node))

    def moves_no_codes(node: Node) -> bool:
        makers = (producer(value) for value in activations(node))
        return all(maker not in chip or maker in layers | moves for maker in makers)

    last = Int32Outputs(set(), set())
    while last != (layers, moves):
        last = Int32Outputs(layers, moves)
        layers = set(filter(is_free, layers))
        moves = {node for node in moves if is_free(node) and moves_no_codes(node)}
    return last


def _readers(node: Node) -> Iterator[Node]:
    return (use.node for use in result(node).uses())
