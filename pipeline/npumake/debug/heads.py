"""A head: copies of the nodes that a probe changes first, behind its active pairs.

One session holds several heads and the float nodes that they read, each under names of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from npumake.debug.calibration_nodes import CalibrationNode
from npumake.debug.network import PairChange, SwitchedNetwork
from npumake.graph import SerializedNode, needed


class Head(NamedTuple):
    """`changed` maps tensors of the float model to their names in the session; `outputs` are the
    model outputs by the former names."""

    changed: dict[str, str]
    outputs: tuple[str, ...]


class Heads(NamedTuple):
    """One head per change, and the part that computes them; without outputs nothing changes."""

    heads: tuple[Head, ...]
    pieces: Sequence[SerializedNode]
    outputs: Sequence[str]
    constants: Mapping[str, np.ndarray]


def heads(
    network: SwitchedNetwork,
    changes: Sequence[PairChange],
    start: int,
    stop: int,
    real: Sequence[str] = (),
) -> Heads:
    """The heads of changes whose seeds are in `start`..`stop`. The session also outputs the float
    tensors `real` of these nodes."""
    mark = network.written.mark()
    copies = [
        _Copies(network, change, f"{mark}{number}", start, stop)
        for number, change in enumerate(changes)
    ]
    copied_heads = tuple(copy.head() for copy in copies)
    outputs = dict.fromkeys(
        [*real, *(name for head in copied_heads for name in head.changed.values())]
    )
    pieces = [piece for copy in copies for piece in copy.pieces]
    constants = {name: array for copy in copies for name, array in copy.constants.items()}
    read = (name for piece in pieces for name in piece.reads)
    floats = needed(network.floats[start:stop], [*real, *read])
    return Heads(copied_heads, [*floats, *pieces], [*outputs], constants)


class _Copies:
    """The copies for one change, in order; all their names end in `suffix`."""

    def __init__(
        self, network: SwitchedNetwork, change: PairChange, suffix: str, start: int, stop: int
    ) -> None:
        self._network, self._change, self._suffix, self._stop = network, change, suffix, stop
        self.pieces: list[SerializedNode] = []
        self.constants: dict[str, np.ndarray] = {}
        self._copies: dict[str, str] = {}  # float tensor -> its copy
        self._put: set[str] = set()  # pairs
        for number in range(start, stop):
            piece = network.pieces[number]
            if number in change.seeds or any(self._is_changed(name) for name in piece.reads):
                self._copy(piece)

    def head(self) -> Head:
        network, change = self._network, self._change
        changed = {
            tensor: self._source(change.replaced.get(tensor, tensor))
            for tensor in self._copies
            if network.is_read_after(tensor, self._stop)
        }
        outputs = []
        for name, tensor in zip(network.written.outputs, network.outputs, strict=True):
            if tensor not in change.replaced and network.chain(name, change.on):
                tensor = self._source(name)
                changed[tensor] = tensor
            outputs.append(tensor)
        return Head(changed, tuple(outputs))

    def _is_changed(self, name: str) -> bool:
        network = self._network
        return network.root(name) in self._copies or bool(network.chain(name, self._change.on))

    def _copy(self, piece: SerializedNode) -> None:
        names = {name: self._constant(name) or self._source(name) for name in piece.reads}
        outputs = {name: f"{name}{self._suffix}" for name in piece.makes}
        self.pieces.append(piece.renamed(names | outputs))
        self._copies |= outputs

    def _source(self, name: str) -> str:
        """The tensor for a reader, behind inserted pairs."""
        tensor = self._network.root(name)
        source = self._copies.get(tensor, tensor)
        for place in self._network.chain(name, self._change.on):
            source = self._through(place, source)
        return source

    def _constant(self, name: str) -> str | None:
        """A constant quantized in advance, which runs faster than a pair."""
        chain = self._network.chain(name, self._change.on)
        values = self._network.written.array(self._network.root(name)) if len(chain) == 1 else None
        if values is None or values.dtype != np.float32 or not np.isfinite(values).all():
            return None
        constant = f"{chain[0].name}{self._suffix}"
        if constant not in self.constants:
            self.constants[constant] = chain[0].on_grid(values)
        return constant

    def _through(self, place: CalibrationNode, source: str) -> str:
        real = f"{place.real}{self._suffix}"
        if place.name not in self._put:
            self._put.add(place.name)
            grid = {f"{real}_scale": place.scale, f"{real}_zero": place.zero_point}
            self.constants |= grid
            codes = f"{real}_codes"
            pair = self._network.pairs[place.name]
            self.pieces.append(_rewired(pair.quantizer, [source, *grid], codes))
            self.pieces.append(_rewired(pair.dequantizer, [codes, *grid], real))
        return real


def _rewired(piece: SerializedNode, sources: Sequence[str], output: str) -> SerializedNode:
    names: Mapping[str, str] = dict(zip(piece.proto.input, sources, strict=False))
    return piece.renamed({**names, piece.makes[0]: output})
