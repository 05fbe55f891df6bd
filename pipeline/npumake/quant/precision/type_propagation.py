"""Where int16 reaches: what was asked for, extended until it holds together.

    follows   a node that only moves values, of which nothing is said, takes the type it is given
    one type  it reads and makes one type; so does, where `target.same_types` holds, every operator
              but those that multiply and accumulate, and with `target.one_type` these too
    spreads   with `target.same_types`, whoever makes what is read as int16 makes int16, and whoever
              reads what is made as int16 reads int16, unless something else is said of them

An operator that has no int16 on the target stays at 8 bits. Each rule only ever widens, so the
order of the nodes does not matter and the end is reached.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from npumake.engine.fusion import result
from npumake.engine.quantized_node import is_constant
from npumake.engine.rules import CONSTANT_OPERANDS, RULES
from npumake.graph import Graph, Node, Value, is_float
from npumake.quant.precision.placement import ALIKE, PASSIVE
from npumake.targets.target import Target

WIDE = "int16"
OUT = -1  # in place of an operand's index: what the node makes
MOVING = ALIKE | PASSIVE
ACCUMULATING = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul"})

TensorUse = tuple[Node, int] | Value  # an operand or the result of a node; an input of the model


@dataclass(frozen=True)
class TypeRequests:
    """What was asked for, spot by spot: int16, and 8 bits and nothing else."""

    wide: set[TensorUse] = field(default_factory=set)
    narrow: set[TensorUse] = field(default_factory=set)


class Int16Uses(NamedTuple):
    wide: set[TensorUse]
    refused: tuple[Node, ...]  # asked to be int16, which their operator is not
    overruled: tuple[Node, ...]  # asked to be of 8 bits somewhere, but of one type with the rest


def operands(node: Node) -> list[int]:
    """The inputs that lie on a grid of their own: activations, and constants that are no weight."""
    return [
        index
        for index, value in enumerate(node.inputs)
        if is_float(value) and (not is_constant(value) or _is_operand(node, index))
    ]


def tensor_uses(node: Node) -> list[TensorUse]:
    return [*((node, index) for index in operands(node)), (node, OUT)]


def propagate_int16(
    graph: Graph, nodes: Sequence[Node], wishes: TypeRequests, target: Target
) -> Int16Uses:
    """Where int16 reaches among the chip's `nodes`, absorbed clamps not among them."""
    widening = _Widening(graph, nodes, wishes, target)
    for node in nodes:
        widening.widen([spot for spot in tensor_uses(node) if spot in wishes.wide])
    widening.widen([value for value in graph.inputs if value in wishes.wide])
    reached = -1
    while reached < len(widening.wide):
        reached = len(widening.wide)
        for node in nodes:
            widening.extend(node)
    used = {
        source
        for node in nodes
        for read, source in widening.given[node].items()
        if read in widening.wide
    }
    unused = {value for value in graph.inputs if value not in used}  # no need to feed it so
    return Int16Uses(widening.wide - unused, tuple(widening.refused), tuple(widening.overruled))


class _Widening:
    def __init__(
        self, graph: Graph, nodes: Sequence[Node], wishes: TypeRequests, target: Target
    ) -> None:
        self.narrow = wishes.narrow
        self.target = target
        self.wide: set[TensorUse] = set()
        self.refused: dict[Node, None] = {}
        self.overruled: dict[Node, None] = {}
        self._makers: dict[Value, TensorUse] = {value: value for value in graph.inputs}
        self._makers |= {result(node): (node, OUT) for node in nodes}
        self._spots = {node: tensor_uses(node) for node in nodes}
        self.given = {node: self._makes(node) for node in nodes}

    def extend(self, node: Node) -> None:
        own, sources = self._spots[node], self.given[node]
        follows = node.op_type in MOVING and self.narrow.isdisjoint(own)
        if follows and not self.wide.isdisjoint(sources.values()):
            self.widen(own)
        binding = own[:-1] if is_mixed(node, self.target) else own
        if is_of_one_type(node, self.target) and not self.wide.isdisjoint(binding):
            if not self.narrow.isdisjoint(own):
                self.overruled[node] = None
            self.widen(own)
        if self.target.same_types:
            both = [*sources.items(), *((source, read) for read, source in sources.items())]
            self.widen(
                [there for here, there in both if here in self.wide and self._is_free(there)]
            )

    def _makes(self, node: Node) -> dict[TensorUse, TensorUse]:
        """Who makes each operand on the chip, or that it is an input."""
        read = ((index, node.inputs[index]) for index in operands(node))
        return {(node, i): self._makers[v] for i, v in read if v is not None and v in self._makers}

    def _is_free(self, spot: TensorUse) -> bool:
        return spot not in self.narrow

    def widen(self, uses: Sequence[TensorUse]) -> None:
        for spot in uses:
            if spot in self.wide:
                continue
            if isinstance(spot, tuple) and not self.target.takes_int16(spot[0].op_type):
                self.refused[spot[0]] = None
            else:
                self.wide.add(spot)


def is_of_one_type(node: Node, target: Target) -> bool:
    """Whether all that the node reads and makes has one type."""
    if node.op_type in ALIKE or target.one_type:
        return True
    return target.same_types and node.op_type not in ACCUMULATING


def is_mixed(node: Node, target: Target) -> bool:
    """Whether what it makes may be int16 though what it reads is not."""
    return target.form is not None and node.op_type in target.form.mixed


def _is_operand(node: Node, index: int) -> bool:
    return node.op_type in CONSTANT_OPERANDS and index not in RULES[node.op_type].weights
