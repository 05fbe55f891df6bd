"""Cuts a model into segments, each a model whose inputs earlier segments computed.

The outputs of a segment are read while they are in the cache, and the next segment overwrites them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np
import onnx

Groups = Sequence[Sequence[str]]
Type = tuple[np.dtype[np.generic], Sequence[int]]  # element type and shape
Span = tuple[int, int]  # indices of nodes: a tensor's producer and its last reader


class Segment(NamedTuple):
    """Consecutive nodes as a model.

    Tensors from earlier segments are `incoming`; `to_bytes` adds their types. `outputs` are those
    of the whole model, and later segments read `outgoing`. A tensor may be both.
    """

    model: onnx.ModelProto
    incoming: tuple[str, ...]
    outputs: tuple[str, ...]
    outgoing: tuple[str, ...]

    def to_bytes(self, types: Mapping[str, Type]) -> bytes:
        """The serialized model; `types` gives the types of incoming tensors."""
        inputs = onnx.ModelProto()
        for name in self.incoming:
            dtype, shape = types[name]
            kind = onnx.helper.np_dtype_to_tensor_dtype(dtype)
            inputs.graph.input.append(onnx.helper.make_tensor_value_info(name, kind, shape))
        # Concatenated protobuf messages merge: no weight is copied.
        return self.model.SerializeToString() + inputs.SerializeToString()


def segments(model: onnx.ModelProto, together: Groups, max_elements: int) -> list[Segment]:
    """The model in segments of up to `max_elements` output elements, or more where a group of
    outputs must stay together. The order of nodes is unchanged; no node has a body."""
    graph = model.graph
    makers = {name: at for at, node in enumerate(graph.node) for name in node.output if name}
    last_readers = {name: at for at, node in enumerate(graph.node) for name in node.input}
    ways = {name: (at, last_readers.get(name, at)) for name, at in makers.items()}
    cuts = _cuts(graph, ways, together, max_elements)
    if not cuts:
        return [Segment(model, (), tuple(output.name for output in graph.output), ())]
    return [_segment(model, ways, span) for span in pairwise([0, *cuts, len(graph.node)])]


def _cuts(
    graph: onnx.GraphProto, ways: Mapping[str, Span], together: Groups, max_elements: int
) -> list[int]:
    """Indices of the nodes that start a new segment. A segment that is at least half full ends
    where the fewest tensors cross, at the last such position."""
    count = max(1, len(graph.node))
    sizes = [0] * count
    for output in graph.output:
        sizes[_maker(ways, output.name)] += _elements(output)
    before = [0, *accumulate(sizes)]
    crossed = _crossed(ways.values(), count)
    makers = [[_maker(ways, name) for name in group] for group in together]
    divided = _crossed(((min(positions), max(positions)) for positions in makers), count)
    cuts: list[int] = []
    begin, best = 0, 0
    for at in range(1, count + 1):
        total = before[at] - before[begin]
        if total > max_elements and best > begin:
            cuts.append(best)
            begin, total = best, before[at] - before[best]
        if not divided[at] and 2 * total >= max_elements and before[at] < before[count]:
            best = at if best <= begin or crossed[at] <= crossed[best] else best
    return cuts


def _maker(ways: Mapping[str, Span], name: str) -> int:
    """The index of the producer; 0 for an input or a constant."""
    return ways[name][0] if name in ways else 0


def _crossed(spans: Iterable[Span], count: int) -> list[int]:
    """By node index, the number of spans that start before it and end at it or later."""
    change = [0] * (count + 1)
    for first, last in spans:
        change[first + 1] += 1
        change[last + 1] -= 1
    return [*accumulate(change)]


def _elements(value: onnx.ValueInfoProto) -> int:
    return math.prod(dim.dim_value for dim in value.type.tensor_type.shape.dim)


def _segment(model: onnx.ModelProto, ways: Mapping[str, Span], span: Span) -> Segment:
    begin, end = span
    graph = model.graph
    nodes = graph.node[begin:end]
    outputs = [value for value in graph.output if begin <= _maker(ways, value.name) < end]
    output_names = tuple(value.name for value in outputs)
    names = (name for node in nodes for name in node.output if name)
    outgoing = tuple(name for name in names if ways[name][1] >= end)
    needed = {name for node in nodes for name in node.input} | {*output_names}
    incoming = tuple(name for name, (maker, _) in ways.items() if maker < begin and name in needed)
    proto = onnx.ModelProto(ir_version=model.ir_version, opset_import=model.opset_import)
    proto.functions.extend(model.functions)
    proto.graph.name = graph.name
    proto.graph.node.extend(nodes)
    proto.graph.input.extend(value for value in graph.input if value.name in needed)
    proto.graph.initializer.extend(tensor for tensor in graph.initializer if tensor.name in needed)
    proto.graph.value_info.extend(value for value in graph.value_info if value.name in needed)
    proto.graph.output.extend(outputs)
    proto.graph.output.extend(
        onnx.ValueInfoProto(name=n) for n in outgoing if n not in output_names
    )
    return Segment(proto, incoming, output_names, outgoing)
