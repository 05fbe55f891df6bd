"""Calibration nodes: the Q/DQ pairs of a calibrated graph; any of them can be left out.

    weight        the pair behind a constant
    activation    the pair behind a node's output or a model input

A pair has the name of its QuantizeLinear. It belongs to the node that reads the constant or
produces the tensor; for a model input, to the nodes that read it. A fused clamp counts with its
node. Without any pair, a calibrated graph is the float model.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Literal, NamedTuple

import numpy as np

from npumake.engine.fusion import absorbed
from npumake.graph import Graph, Node, Value, array, only_consumer, producer
from npumake.graph.qdq import (
    QUANTIZE,
    Grid,
    axis_of,
    grid_of,
    insert_pair,
    is_dequantize,
    readers_past_pairs,
    tensor_before_pairs,
)
from npumake.quant.precision.grids import on_grid

Kind = Literal["weight", "activation"]


class CalibrationNode(NamedTuple):
    """A Q/DQ pair on `tensor`. `reads` are the readers of its output as (node, input index);
    `outputs` the indices of the model outputs that it is."""

    name: str
    kind: Kind
    tensor: str
    real: str  # its dequantized output in the calibrated graph
    reads: tuple[tuple[str, int], ...]
    output_indices: tuple[int, ...]
    owners: tuple[str, ...]
    scale: np.ndarray  # a scalar, or one per channel
    zero_point: np.ndarray
    axis: int | None  # of the channels, if per-channel

    @property
    def limits(self) -> tuple[np.ndarray, np.ndarray]:
        """The smallest and the largest value of the grid, per channel."""
        limits, zero = np.iinfo(self.zero_point.dtype), self.zero_point.astype(np.int64)
        return (limits.min - zero) * self.scale, (limits.max - zero) * self.scale

    @property
    def threshold(self) -> float:
        """The largest magnitude of any channel's grid."""
        return float(max(np.max(np.abs(limit)) for limit in self.limits))

    def on_grid(self, values: np.ndarray) -> np.ndarray:
        """The values quantized and dequantized. Raises ValueError on NaN."""
        return on_grid(values, Grid(self.scale, self.zero_point), self.axis)


def calibration_nodes(calibrated: Graph) -> tuple[CalibrationNode, ...]:
    """In graph order. Quantized inputs and outputs of the model are not pairs."""
    outputs = [str(value.name) for value in calibrated.outputs]
    return tuple(_calibration_node(qdq, outputs) for qdq in _pairs(calibrated))


def by_owner(nodes: Collection[CalibrationNode]) -> dict[str, tuple[str, ...]]:
    """Regular node -> the names of its calibration nodes."""
    names_by_owner: dict[str, list[str]] = {}
    for node in nodes:
        for owner in node.owners:
            names_by_owner.setdefault(owner, []).append(node.name)
    return {owner: tuple(names) for owner, names in names_by_owner.items()}


def without(calibrated: Graph) -> Graph:
    """A float copy without any pair; tensors of the same name are the same tensors."""
    graph = calibrated.copy()
    sources = {qdq.real: tensor_before_pairs(qdq.tensor) for qdq in _pairs(graph)}
    for real, source in sources.items():
        graph.replace_readers(real, source, [use.node for use in tuple(real.uses())])
    graph.expose([str(sources.get(value, value).name) for value in graph.outputs])
    graph.drop_unused()
    return graph


def quantize(graph: Graph, nodes: Iterable[CalibrationNode]) -> dict[str, str]:
    """Insert the pairs into `graph`, a float copy (`without`) or a part of one.

    Returns pair name -> name of its output. Pairs without a reader in the graph are skipped; the
    graph's outputs do not change.
    """
    outputs: dict[str, str] = {}
    by_name = {str(node.name): node for node in graph.nodes()}
    values = graph.values()
    for place in nodes:
        places = [(by_name[name], index) for name, index in place.reads if name in by_name]
        if not places and place.tensor not in values:
            continue
        # A pair may stand behind another.
        source = places[0][0].inputs[places[0][1]] if places else values[place.tensor]
        assert source is not None
        before = places[0][0] if place.kind == "weight" else None
        grid = Grid(place.scale, place.zero_point)
        real = insert_pair(graph, source, grid, place.tensor, axis=place.axis, before=before).real
        for node, index in places:
            graph.set_inputs(node, {index: real})
        outputs[place.name] = str(real.name)
    return outputs


def with_only(real: Graph, nodes: Iterable[CalibrationNode]) -> Graph:
    """A copy of the float graph `real` with only these pairs."""
    graph, chosen = real.copy(), tuple(nodes)
    names = [str(value.name) for value in graph.outputs]
    outputs = quantize(graph, chosen)
    for node in chosen:
        for index in node.output_indices:
            names[index] = outputs[node.name]
    graph.expose(names)
    return graph


def whole(node: Node) -> Node:
    """The node that a fused clamp belongs to; any other node is returned as it is."""
    before = producer(node.inputs[0]) if node.inputs and node.inputs[0] is not None else None
    return before if before is not None and absorbed(before) is node else node


class _Pair(NamedTuple):
    quantizer: Node
    tensor: Value
    grid: Grid
    real: Value


def _pairs(graph: Graph) -> list[_Pair]:
    pairs = (_pair(node) for node in graph.nodes(QUANTIZE))
    return [qdq for qdq in pairs if qdq is not None]


def _pair(quantizer: Node) -> _Pair | None:
    """The pair of a Q of a known grid with one DQ as only reader; else None."""
    codes, tensor = quantizer.outputs[0], quantizer.inputs[0]
    reader, grid = only_consumer(codes), grid_of(quantizer)
    if tensor is None or grid is None or not is_dequantize(reader):
        return None
    return _Pair(quantizer, tensor, grid, reader.outputs[0])


def _calibration_node(qdq: _Pair, outputs: Sequence[str]) -> CalibrationNode:
    tensor = tensor_before_pairs(qdq.tensor)
    kind: Kind = "activation" if array(tensor) is None else "weight"
    maker, read = producer(tensor), tuple(readers_past_pairs(qdq.real))
    owners = [whole(node) for node, _ in read] if maker is None else [whole(maker)]
    return CalibrationNode(
        str(qdq.quantizer.name),
        kind,
        str(tensor.name),
        str(qdq.real.name),
        tuple((str(node.name), index) for node, index in read),
        tuple(index for index, name in enumerate(outputs) if name == qdq.real.name),
        tuple(dict.fromkeys(str(owner.name) for owner in owners)),
        *qdq.grid,
        None if qdq.grid.is_per_tensor else axis_of(qdq.quantizer),
    )
