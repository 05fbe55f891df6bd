"""A calibrated graph as a float network whose tensors are read through pairs, each on or off.

    root     the tensor that pairs were put behind
    chain    the pairs between it and one who reads it, the nearest to it first

With every pair off it is the float model. Which are on says what a reader gets: the tensor itself,
or what the last of them makes of it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

from npumake.debug.calibration_nodes import CalibrationNode
from npumake.engine.grids import DQ, Q
from npumake.graph import Graph, SerializedGraph, SerializedNode

Places = Sequence[CalibrationNode]  # the pairs that are on


class SwitchedPair(NamedTuple):
    quantizer: SerializedNode
    dequantizer: SerializedNode


class PairChange(NamedTuple):
    """What pairs change: `replaced` are the tensors that nobody reads in float any more, and under
    which name they are read; `seeds` the pieces that change first, by their number."""

    on: Mapping[str, CalibrationNode]
    replaced: Mapping[str, str]
    seeds: frozenset[int]


class SwitchedNetwork:
    """`pieces` are the nodes of the float model, in order, as the calibrated graph has them;
    `floats` the same as they read when every pair is off. Both go by their number."""

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
        """The pairs that are on between a tensor and who reads it by this name."""
        return [on[pair] for pair in self._chains.get(name, ()) if pair in on]

    def is_read_after(self, tensor: str, number: int) -> bool:
        """Whether a piece from that one on reads it, or the world."""
        read = any(reader >= number for reader, _ in self._readers.get(tensor, ()))
        return read or tensor in self.outputs

    def crossing(self) -> list[int]:
        """How many numbers there are, before each piece, that those before it make and one from it
        on reads."""
        more = [0] * (len(self.floats) + 1)
        for number, piece in enumerate(self.floats):
            for name in piece.makes:
                last = max((reader for reader, _ in self._readers.get(name, ())), default=number)
                more[number + 1] += self.written.size(name)
                more[last + 1] -= self.written.size(name)
        return [*accumulate(more)]

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
        """The name by which it is read through what everybody reads it through."""
        names = [name for _, name in self._readers.get(tensor, ())] + self._output_names(tensor)
        chains = {tuple(place.name for place in self.chain(name, on)) for name in names}
        return names[0] if tensor in self.makers and len(chains) == 1 and chains != {()} else None

    def _first(self, tensor: str, on: Mapping[str, CalibrationNode]) -> Iterator[int]:
        """Who changes first where some read it in float: those that do not; its maker, where the
        world is told something else."""
        yield from (number for number, n in self._readers.get(tensor, ()) if self.chain(n, on))
        if tensor in self.makers and any(
            self.chain(name, on) for name in self._output_names(tensor)
        ):
            yield self.makers[tensor]

    def _output_names(self, tensor: str) -> list[str]:
        """The answers that are this tensor, quantized or not."""
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
    while maker is not None and maker.op_type in (Q, DQ):
        if maker.name in pairs:
            names.append(maker.name)
        maker = makers.get(maker.proto.input[0])
    yield from reversed(names)
