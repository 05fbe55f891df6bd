"""In which order the nodes of a model are written, which a runtime may be told to keep to."""

from __future__ import annotations

import heapq

import onnx


def side_paths_first(model: bytes) -> bytes:
    """The model, in which of all nodes that could be next that with the shortest way to an end is:
    what only looks at a tensor comes right behind its maker, while the tensor is in the cache.

    No node of the model has a branch or a body.
    """
    proto = onnx.load_from_string(model)
    nodes = list(proto.graph.node)
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
    del proto.graph.node[:]
    while ready:
        _, at = heapq.heappop(ready)
        proto.graph.node.append(nodes[at])
        for reader in readers[at]:
            waits[reader] -= 1
            if not waits[reader]:
                heapq.heappush(ready, (left[reader], reader))
    return proto.SerializeToString(deterministic=True)
