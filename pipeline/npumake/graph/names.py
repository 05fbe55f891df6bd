"""GraphNames: the nodes and tensors of a graph by name, found without a walk over all nodes."""

from __future__ import annotations

from functools import cached_property

from npumake.graph.graph import Graph, Node, Value
from npumake.graph.origin import origin

Nodes = dict[str, list[Node]]


class GraphNames:
    """The names of a graph that is not edited meanwhile."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    def find(self, name: str) -> tuple[Node, ...]:
        """As `Graph.find`: the node of this name, else every node of that trained node."""
        return tuple(self._own.get(name) or self._trained.get(name, ()))

    @cached_property
    def values(self) -> dict[str, Value]:
        return self.graph.values()

    @cached_property
    def _own(self) -> Nodes:
        own: Nodes = {}
        for node in self.graph.nodes():
            own.setdefault(str(node.name), []).append(node)
        return own

    @cached_property
    def _trained(self) -> Nodes:
        trained: Nodes = {}
        for node in self.graph.nodes():
            for name in origin(node):
                trained.setdefault(name, []).append(node)
        return trained
