"""A model in segments, each a model of its own that is fed what those before it made.

Whoever looks at what a model makes on the way reads what one segment hands out while it is in the
cache, and has the next one write over it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np
import onnx

Groups = Sequence[Sequence[str]]
Type = tuple[np.dtype[np.generic], Sequence[int]]  # and shape
Span = tuple[int, int]  # numbers of nodes: of the one that makes a tensor, of its last reader


class Segment(NamedTuple):
    """Some nodes of a model. Of what they are `fed` by segments before, theirs does not say yet
    what it is. It gives what is `handed` out of the whole, and what is `carried` to segments
    behind it; a tensor may be both."""

    model: onnx.ModelProto
    incoming: tuple[str, ...]
    outputs: tuple[str, ...]
    outgoing: tuple[str, ...]

    def to_bytes(self, types: Mapping[str, Type]) -> bytes:
        """The model, what it is fed being of these types."""
        inputs = onnx.ModelProto()
        for name in self.incoming:
            dtype, shape = types[name]
            kind = onnx.helper.np_dtype_to_tensor_dtype(dtype)
            inputs.graph.input.append(onnx.helper.make_tensor_value_info(name, kind, shape))
        # Two messages, one behind the other, are read as what both say: no weight is copied.
        return self.model.SerializeToString() + inputs.SerializeToString()


def segments(model: onnx.ModelProto, together: Groups, most: int) -> list[Segment]:
    """The model in segments that hand out up to `most` elements, more where a group of outputs that
    stay together has more. Its nodes keep their order; none has a branch or a body."""
    graph = model.graph
    makers = {name: at for at, node in enumerate(graph.node) for name in node.output if name}
    last_readers = {name: at for at, node in enumerate(graph.node) for name in node.input}
    ways = {name: (at, last_readers.get(name, at)) for name, at in makers.items()}
    cuts = _cuts(graph, ways, together, most)
    if not cuts:
        return [Segment(model, (), tuple(output.name for output in graph.output), ())]
    return [_segment(model, ways, span) for span in pairwise([0, *cuts, len(graph.node)])]


def _cuts(
    graph: onnx.GraphProto, ways: Mapping[str, Span], together: Groups, most: int
) -> list[int]:
    """The numbers of nodes that begin another segment. Of the places where a segment is at least
    half full it ends at the last of those that the fewest tensors cross."""
    count = max(1, len(graph.node))
    sizes = [0] * count
    for output in graph.output:
        sizes[_maker(ways, output.name)] += _elements(output)
    before = [0, *accumulate(sizes)]
    crossed = _crossed(ways.values(), count)
    makers = [[_maker(ways, name) for name in group] for group in together]
    divided = _crossed(((min(each), max(each)) for each in makers), count)
    cuts: list[int] = []
    begin, best = 0, 0
    for at in range(1, count + 1):
        total = before[at] - before[begin]
        if total > most and best > begin:
            cuts.append(best)
            begin, total = best, before[at] - before[best]
        if not divided[at] and 2 * total >= most and before[at] < before[count]:
            best = at if best <= begin or crossed[at] <= crossed[best] else best
    return cuts


def _maker(ways: Mapping[str, Span], name: str) -> int:
    """What is an output as it was fed, or is constant, the first node counts as making."""
    return ways[name][0] if name in ways else 0


def _crossed(spans: Iterable[Span], count: int) -> list[int]:
    """By number of a node, how many spans begin before it and do not end before it."""
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
