"""Type propagation: requested int16 spreads until all rules hold.

    follows   a data movement without a rule takes the type of its input
    one type  inputs and output have one type: of a data movement; with `target.same_types` of every
              operator but those that accumulate; with `target.one_type` of these too
    spreads   with `target.same_types`, producers of int16 inputs output int16 and readers of int16
              outputs read int16, unless a rule forbids it

An operator without int16 on the target keeps 8 bits. Each rule only ever widens, so the order of
the nodes does not matter and the iteration ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import NamedTuple

from npumake.engine.fusion import result
from npumake.engine.quantized_node import is_constant
from npumake.engine.rules import CONSTANT_OPERANDS, RULES
from npumake.graph import Graph, Node, Value, is_float
from npumake.quant.precision.placement import MOVE_OPERATORS, SAME_GRID_OPERATORS
from npumake.targets.parts import takes_int16
from npumake.targets.target import Target

WIDE = "int16"
OUT = -1  # the node's output, in place of an input index
MOVING_OPERATORS = SAME_GRID_OPERATORS | MOVE_OPERATORS
ACCUMULATING_OPERATORS = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul"})

TensorUse = tuple[Node, int] | Value  # an input or output of a node, or an input of the model


@dataclass(frozen=True)
class TypeRequests:
    """Requested types by use: int16, and strictly 8 bits."""

    wide: set[TensorUse] = field(default_factory=set)
    narrow: set[TensorUse] = field(default_factory=set)


class Int16Uses(NamedTuple):
    """The uses in int16, and the nodes whose requests were not met."""

    wide: set[TensorUse]
    refused: tuple[Node, ...]  # int16 requested, but not available for the operator
    overruled: tuple[Node, ...]  # 8 bits requested for a part of a one-type node


def operands(node: Node) -> list[int]:
    """The inputs with a grid of their own: activations, and constants other than weights."""
    return [
        index
        for index, value in enumerate(node.inputs)
        if is_float(value) and (not is_constant(value) or _is_operand(node, index))
    ]


def tensor_uses(node: Node) -> list[TensorUse]:
    return [*((node, index) for index in operands(node)), (node, OUT)]


def propagate_int16(
    graph: Graph, nodes: Sequence[Node], requests: TypeRequests, target: Target
) -> Int16Uses:
    """The int16 uses among the chip's `nodes`; absorbed clamps are not among these."""
    widening = _Widening(graph, nodes, requests, target)
    for node in nodes:
        widening.widen([spot for spot in tensor_uses(node) if spot in requests.wide])
    widening.widen([value for value in graph.inputs if value in requests.wide])
    widening.spread()
    used = {
        source
        for node in nodes
        for read, source in widening.sources[node].items()
        if read in widening.wide
    }
    unused = {value for value in graph.inputs if value not in used}  # no reader needs int16
    return Int16Uses(widening.wide - unused, tuple(widening.refused), tuple(widening.overruled))


_Turn = tuple[int, int]  # a round, and the place of a node


class _Widening:
    def __init__(
        self, graph: Graph, nodes: Sequence[Node], requests: TypeRequests, target: Target
    ) -> None:
        self.narrow = requests.narrow
        self.target = target
        self.wide: set[TensorUse] = set()
        self._new: list[TensorUse] = []  # of `wide`, in order
        self.refused: dict[Node, None] = {}
        self.overruled: dict[Node, None] = {}
        self._makers: dict[Value, TensorUse] = {value: value for value in graph.inputs}
        self._makers |= {result(node): (node, OUT) for node in nodes}
        self._spots = {node: tensor_uses(node) for node in nodes}
        self.sources = {node: self._makes(node) for node in nodes}
        self._place = {node: index for index, node in enumerate(nodes)}
        self._readers: dict[TensorUse, list[Node]] = {}
        for node in nodes:
            for source in dict.fromkeys(self.sources[node].values()):
                self._readers.setdefault(source, []).append(node)
        self._waiting: list[_Turn] = []

    def spread(self) -> None:
        """Extends every node in order, round after round; from the second round on those that a
        wider use is new to."""
        self._waiting = [(0, index) for index in self._place.values()]
        nodes, last = [*self._place], (-1, -1)
        while self._waiting:
            turn = heappop(self._waiting)
            if turn != last:
                last = turn
                count = len(self._new)
                self.extend(nodes[turn[1]])
                self._wake(self._new[count:], turn)

    def _wake(self, uses: Sequence[TensorUse], turn: _Turn) -> None:
        """The nodes that look at these uses get a turn: in this round those behind, the others in
        the next."""
        for spot in uses:
            own = [spot[0]] if isinstance(spot, tuple) else []
            for index in (self._place[n] for n in (*own, *self._readers.get(spot, ()))):
                heappush(self._waiting, (turn[0] + (index <= turn[1]), index))

    def extend(self, node: Node) -> None:
        own, sources = self._spots[node], self.sources[node]
        follows = node.op_type in MOVING_OPERATORS and self.narrow.isdisjoint(own)
        if follows and not self.wide.isdisjoint(sources.values()):
            self.widen(own)
        binding = own[:-1] if is_mixed(node, self.target) else own
        if is_of_one_type(node, self.target) and not self.wide.isdisjoint(binding):
            if not self.narrow.isdisjoint(own):
                self.overruled[node] = None
            self.widen(own)
        if self.target.same_types:
            neighbors = [*sources.items(), *((source, read) for read, source in sources.items())]
            self.widen(
                [
                    neighbor
                    for tensor, neighbor in neighbors
                    if tensor in self.wide and self._is_free(neighbor)
                ]
            )

    def _makes(self, node: Node) -> dict[TensorUse, TensorUse]:
        """By operand, its producer on the chip or the model input."""
        read = ((index, node.inputs[index]) for index in operands(node))
        return {(node, i): self._makers[v] for i, v in read if v is not None and v in self._makers}

    def _is_free(self, spot: TensorUse) -> bool:
        return spot not in self.narrow

    def widen(self, uses: Sequence[TensorUse]) -> None:
        for spot in uses:
            if spot in self.wide:
                continue
            if isinstance(spot, tuple) and not takes_int16(spot[0], self.target):
                self.refused[spot[0]] = None
            else:
                self.wide.add(spot)
                self._new.append(spot)


def is_of_one_type(node: Node, target: Target) -> bool:
    """Whether all inputs and outputs of the node have one type."""
    if node.op_type in SAME_GRID_OPERATORS or target.one_type:
        return True
    return target.same_types and node.op_type not in ACCUMULATING_OPERATORS


def is_mixed(node: Node, target: Target) -> bool:
    """Whether the output may be int16 though the inputs are not."""
    return target.form is not None and node.op_type in target.form.mixed


def _is_operand(node: Node, index: int) -> bool:
    return node.op_type in CONSTANT_OPERANDS and index not in RULES[node.op_type].weights
