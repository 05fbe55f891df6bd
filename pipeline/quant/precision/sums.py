"""Sums: what a layer hands out for the CPU as it accumulated it, in int32.

The sum of x * w + b is on the grid s_x * s_w of each channel. Brought to 8 bits it would lose what
nobody on the chip asks it to lose: so where only the CPU reads a layer, and no clamp is computed
with it, the CPU dequantizes the sums. What only moves them goes to the CPU with them, unless it is
asked to run on the chip.

A dilated Conv gives 8 bits and no more. Source: the operator lists of D-Robotics' Bayes chips.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

from pipeline.engine.fusion import absorbed, result
from pipeline.graph import Node, attribute, producer
from pipeline.quant.precision.placement import PASSIVE, activations
from pipeline.quant.precision.widening import OUT, Spot, spots
from pipeline.targets.target import Target


class Sums(NamedTuple):
    layers: set[Node]  # whose sums are handed out
    moves: set[Node]  # of the chip's nodes, those that move what is dequantized


def handed_out(
    nodes: Collection[Node],
    chip: Collection[Node],
    wide: Collection[Spot],
    spoken: Collection[Node | Spot],
    target: Target,
) -> Sums:
    """Of the `nodes` on the `chip`, given what is int16, and the nodes and the spots that are
    spoken of: those are what the project says."""

    def is_sum(node: Node) -> bool:
        asked = (node, OUT) in spoken or any(spot in wide for spot in spots(node))
        alone = absorbed(node) is None and max(attribute(node, "dilations", (1,))) == 1
        return node.op_type in target.sums and alone and not asked

    def is_move(node: Node) -> bool:
        return node.op_type in PASSIVE and not any(one in spoken for one in (node, *spots(node)))

    layers, moves = set(filter(is_sum, nodes)), set(filter(is_move, nodes))

    def is_free(node: Node) -> bool:
        return all(reader not in chip or reader in moves for reader in _readers(node))

    def moves_no_codes(node: Node) -> bool:
        makers = (producer(value) for value in activations(node))
        return all(maker not in chip or maker in layers | moves for maker in makers)

    last = Sums(set(), set())
    while last != (layers, moves):
        last = Sums(layers, moves)
        layers = set(filter(is_free, layers))
        moves = {node for node in moves if is_free(node) and moves_no_codes(node)}
    return last


def _readers(node: Node) -> Iterator[Node]:
    return (use.node for use in result(node).uses())
