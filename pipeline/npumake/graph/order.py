"""In which order the nodes of a model are written, which a runtime may be told to keep to."""

from __future__ import annotations

import heapq
import sys

import onnx

from npumake.graph.blocked import blocks_handed_out
from npumake.graph.segments import Groups, Segment, segments


def short_paths_first(
    model: bytes, block: int, together: Groups = (), most: int = sys.maxsize
) -> tuple[list[Segment], frozenset[str]]:
    """The model as onnxruntime has rewritten it, its nodes in haste, in segments that hand out
    `most` elements each (npumake.graph.segments); and the outputs that are handed out in blocks of
    `block` channels, where that is more than one."""
    proto = onnx.load_from_string(model)
    blocked = blocks_handed_out(proto.graph, block) if block > 1 else frozenset[str]()
    _side_paths_first(proto.graph)
    return segments(proto, together, most), blocked


def _side_paths_first(graph: onnx.GraphProto) -> None:
    """Of all nodes that could be next, that with the shortest way to an end is: what only looks at
    a tensor comes right behind its maker, while the tensor is in the cache.

    No node has a branch or a body.
    """
    nodes = list(graph.node)
    maker = {name: at for at, node in enumerate(nodes) for name in node.output if name}
    read = [{maker[name] for name in node.input if name in maker} for node in nodes]
    readers: list[list[int]] = [[] for _ in nodes]
    left = [0] * len(nodes)  # how many nodes are on the longest way to an end
    for at in reversed(range(len(nodes))):  # a model lists makers before readers
        for source in read[at]:
            readers[source].append(at)
            left[source] = max(left[source], left[at] + 1)
    waits = [len(sources) for sources in read]
    ready = [(left[at], at) for at, count in enumerate(waits) if not count]
    heapq.heapify(ready)
    del graph.node[:]
    while ready:
        _, at = heapq.heappop(ready)
        graph.node.append(nodes[at])
        for reader in readers[at]:
            waits[reader] -= 1
            if not waits[reader]:
                heapq.heappush(ready, (left[reader], reader))
