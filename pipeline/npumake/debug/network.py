"""A calibrated graph as a float network with Q/DQ pairs that can be switched on and off.

    root     the tensor in front of a chain of pairs
    chain    the pairs between a root and one reader, nearest to the root first

With every pair off it is the float model. A reader gets the output of the last active pair in its
chain, or the root.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

from npumake.debug.calibration_nodes import CalibrationNode
from npumake.graph import Graph, SerializedGraph, SerializedNode
from npumake.graph.qdq import is_qdq

Places = Sequence[CalibrationNode]  # the pairs that are on


class SwitchedPair(NamedTuple):
    quantizer: SerializedNode
    dequantizer: SerializedNode


class PairChange(NamedTuple):
    """The effect of the active pairs `on`. `replaced` maps tensors without float readers left to
    the name that all read instead; `seeds` are the numbers of the nodes that change first."""

    on: Mapping[str, CalibrationNode]
    replaced: Mapping[str, str]
    seeds: frozenset[int]


class SwitchedNetwork:
    """`pieces` are the nodes of the float model in order, as serialized in the calibrated graph;
    `floats` the same with every pair off. Both are indexed by number."""

    def __init__(self, calibrated: Graph, nodes: Places) -> None:
        self.written = SerializedGraph(calibrated)
        makers = {name: piece for piece in self.written.pieces for name in piece.makes}
        self._roots = {node.real: node.tensor for node in nodes}
        self.pairs = {node.name: _pair(node, makers) for node in nodes}
        self._chains = {node.real: (*_chain(node.real, makers, self.pairs),) for node in nodes}
        self.outputs = tuple(self.root(name) for name in self.written.outputs)
        self.pieces = self._live()
        self.floats = [piece.renamed(self._roots) for piece in self.pieces]
        self.makers = {name: number for number, p in enumerate(self.pieces) for name in p.makes}
        self._readers: dict[str, list[tuple[int, str]]] = {}
        for number, piece in enumerate(self.pieces):
            for name in piece.reads:
                self._readers.setdefault(self.root(name), []).append((number, name))

    def root(self, name: str) -> str:
        return self._roots.get(name, name)

    def chain(self, name: str, on: Mapping[str, CalibrationNode]) -> list[CalibrationNode]:
        """The active pairs between a tensor and the readers of this name."""
        return [on[pair] for pair in self._chains.get(name, ()) if pair in on]

    def is_read_after(self, tensor: str, number: int) -> bool:
        """Whether a node from `number` on reads the tensor, or it is a model output."""
        read = any(reader >= number for reader, _ in self._readers.get(tensor, ()))
        return read or tensor in self.outputs

    def crossing(self) -> list[int]:
        """For each position, the number of values that cross it: produced before, read after."""
        byte_changes = [0] * (len(self.floats) + 1)
        for number, piece in enumerate(self.floats):
            for name in piece.makes:
                last = max((reader for reader, _ in self._readers.get(name, ())), default=number)
                byte_changes[number + 1] += self.written.size(name)
                byte_changes[last + 1] -= self.written.size(name)
        return [*accumulate(byte_changes)]

    def change(self, places: Places) -> PairChange:
        on = {place.name: place for place in places}
        replaced: dict[str, str] = {}
        seeds: set[int] = set()
        for tensor in dict.fromkeys(place.tensor for place in places):
            if name := self._read_by_all(tensor, on):
                replaced[tensor] = name
                seeds.add(self.makers[tensor])
            else:
                seeds.update(self._first(tensor, on))
        return PairChange(on, replaced, frozenset(seeds))

    def _read_by_all(self, tensor: str, on: Mapping[str, CalibrationNode]) -> str | None:
        """The name that all readers use, if they share one chain of active pairs; else None."""
        names = [name for _, name in self._readers.get(tensor, ())] + self._output_names(tensor)
        chains = {tuple(place.name for place in self.chain(name, on)) for name in names}
        return names[0] if tensor in self.makers and len(chains) == 1 and chains != {()} else None

    def _first(self, tensor: str, on: Mapping[str, CalibrationNode]) -> Iterator[int]:
        """The nodes that change first if some readers stay in float: the quantized readers, and
        the producer of a quantized model output."""
        yield from (number for number, n in self._readers.get(tensor, ()) if self.chain(n, on))
        if tensor in self.makers and any(
            self.chain(name, on) for name in self._output_names(tensor)
        ):
            yield self.makers[tensor]

    def _output_names(self, tensor: str) -> list[str]:
        """The model outputs that are this tensor, quantized or not."""
        return [name for name in self.written.outputs if self.root(name) == tensor]

    def _live(self) -> list[SerializedNode]:
        needed, live = set(self.outputs), []
        for piece in reversed(self.written.pieces):
            if not needed.isdisjoint(piece.makes):
                needed.update(self.root(name) for name in piece.reads)
                live.append(piece)
        return live[::-1]


def _pair(node: CalibrationNode, makers: Mapping[str, SerializedNode]) -> SwitchedPair:
    dequantizer = makers[node.real]
    return SwitchedPair(makers[dequantizer.proto.input[0]], dequantizer)


def _chain(
    real: str, makers: Mapping[str, SerializedNode], pairs: Collection[str]
) -> Iterator[str]:
    names, maker = list[str](), makers.get(real)
    while is_qdq(maker):
        if maker.name in pairs:
            names.append(maker.name)
        maker = makers.get(maker.proto.input[0])
    yield from reversed(names)
