"""Sums: what a layer hands out for the CPU as it accumulated it, in int32.

The sum of x * w + b is on the grid s_x * s_w of each channel. Brought to 8 bits it would lose what
nobody on the chip asks it to lose: so where only the CPU reads a layer, and no clamp is computed
with it, the CPU dequantizes the sums. What only moves them goes to the CPU with them, unless it is
asked to run on the chip, or weaves an image of them.

A dilated Conv gives 8 bits and no more (the operator lists of D-Robotics' Bayes chips). Of int16
nothing is documented, and its sums may be beyond int32: a layer that reads it makes int16 instead.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from npumake.engine.fusion import absorbed, result
from npumake.graph import Graph, Node, attribute, is_float, may_have_int16, producer
from npumake.quant.precision.placement import PASSIVE, activations
from npumake.quant.precision.type_propagation import (
    OUT,
    WIDE,
    Int16Uses,
    TensorUse,
    TypeRequests,
    propagate_int16,
    tensor_uses,
)
from npumake.targets.target import Target

# What the chip does on the way out, though it computes nothing: an image is woven of channels, or
# repeated. Other moves of an output are views and copies that a host makes in passing.
WEAVING = frozenset(
    {"DepthToSpace", "Expand", "GatherElements", "GatherND", "SpaceToDepth", "Tile"}
)


class Int32Outputs(NamedTuple):
    layers: set[Node]  # whose sums are handed out
    moves: set[Node]  # of the chip's nodes, those that move what is dequantized

    def moved(self, target: Target) -> set[Node]:
        """Of the moves, those that the chip makes of the sums of a Conv, before they are
        dequantized."""
        moves = set[Node]()
        for node in self.moves:
            behind = _moved_layer(node, self.moves, target)
            if behind in self.layers and behind.op_type == "Conv":
                moves.add(node)
        return moves


def _moved_layer(node: Node, moves: Collection[Node], target: Target) -> Node | None:
    """What makes the values, back through such moves; None behind any other."""
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
    wishes: TypeRequests,
    target: Target,
) -> tuple[Int16Uses, Int32Outputs]:
    """What of the `nodes` on the `chip` is int16, and what they hand out as sums; the project
    wants those in `wanted` on the chip."""
    types = propagate_int16(graph, nodes, wishes, target)
    sums = _handed_out(nodes, chip, {*required, *wishes.narrow, *types.wide}, target)
    reading = [node for node in sums.layers if not types.wide.isdisjoint(tensor_uses(node))]
    if may_have_int16(graph):
        reading += _leaving(nodes, chip, sums, {*wishes.narrow, *types.wide}, target)
    if not reading:
        return types, sums
    wide = wishes.wide.union((node, OUT) for node in reading)
    return with_int32_outputs(
        graph, nodes, chip, required, TypeRequests(wide, wishes.narrow), target
    )


def _leaving(
    nodes: Sequence[Node],
    chip: Collection[Node],
    sums: Int32Outputs,
    spoken: Collection[TensorUse],
    target: Target,
) -> list[Node]:
    """Those that give the CPU codes, of a chip whose tool has int16 there."""
    if target.form is None or target.form.leaving != WIDE:
        return []

    def leaves(node: Node) -> bool:
        output = result(node)
        is_read = any(use.node not in chip for use in output.uses()) or output.is_graph_output()
        return is_read and is_float(output) and target.takes_int16(node.op_type)

    settled = sums.layers | sums.moves
    codes = (node for node in nodes if node not in settled and node.op_type not in target.sums)
    return [node for node in codes if (node, OUT) not in spoken and leaves(node)]


def _handed_out(
    nodes: Sequence[Node],
    chip: Collection[Node],
    spoken: Collection[Node | TensorUse],
    target: Target,
) -> Int32Outputs:
    """Given the nodes, operands and results of which a type or a place is settled."""

    def is_sum(node: Node) -> bool:
        alone = absorbed(node) is None and max(attribute(node, "dilations", (1,))) == 1
        return node.op_type in target.sums and alone and (node, OUT) not in spoken

    moving = target.moved_sums or PASSIVE - WEAVING

    def is_move(node: Node) -> bool:
        return node.op_type in moving and not any(
            use in spoken for use in (node, *tensor_uses(node))
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
