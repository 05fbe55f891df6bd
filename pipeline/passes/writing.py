"""What is written in front of a node that is spelled out, its names after the node's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.graph import Graph, Node, Value


@dataclass(frozen=True)
class Writing:
    """What is written in front of a node, its names after the node's."""

    graph: Graph
    node: Node

    def constant(self, values: np.ndarray, name: str) -> Value:
        return self.graph.constant(f"{self.node.name}_{name}", values)

    def made(
        self, kind: str, read: Sequence[Value | None], name: str, **attributes: object
    ) -> Value:
        called = f"{self.node.name}_{name}"
        return self.graph.insert(kind, read, called, before=self.node, **attributes)

    def shaped(self, value: Value, dims: Sequence[int], name: str) -> Value:
        return self.made("Reshape", [value, self.constant(np.array(dims), "shape")], name)

    def cut(self, value: Value, axis: int, begin: int, end: int, name: str) -> Value:
        bounds = [self.constant(np.array([number]), "span") for number in (begin, end, axis)]
        return self.made("Slice", [value, *bounds], name)
