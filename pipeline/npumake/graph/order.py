"""The order of a model's nodes, which a runtime can be configured to keep."""

from __future__ import annotations

import heapq
import sys

import onnx

from npumake.graph.blocked import blocks_handed_out
from npumake.graph.segments import Groups, Segment, segments


def short_paths_first(
    model: bytes, block: int, together: Groups = (), max_elements: int = sys.maxsize
) -> tuple[list[Segment], frozenset[str]]:
    """Onnxruntime's rewritten model with side branches first, cut into segments of at most
    `max_elements` output elements (npumake.graph.segments). Also the outputs in blocked layout, for
    `block` > 1."""
    proto = onnx.load_from_string(model)
    blocked = blocks_handed_out(proto.graph, block) if block > 1 else frozenset[str]()
    _side_paths_first(proto.graph)
    return segments(proto, together, max_elements), blocked


def _side_paths_first(graph: onnx.GraphProto) -> None:
    """Among the nodes that are ready, the one with the shortest path to an end comes next. So a
    node that only observes a tensor follows its producer, while the tensor is in the cache.

    No node has a branch or body.
    """
    nodes = list(graph.node)
    maker = {name: at for at, node in enumerate(nodes) for name in node.output if name}
    read = [{maker[name] for name in node.input if name in maker} for node in nodes]
    readers: list[list[int]] = [[] for _ in nodes]
    left = [0] * len(nodes)  # nodes on the longest path to an end
    for at in reversed(range(len(nodes))):  # producers come before readers
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
