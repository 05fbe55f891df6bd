"""Inserts nodes before a node that is being decomposed, named after it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from npumake.graph import Graph, Node, Value


@dataclass(frozen=True)
class Writing:
    """Inserts nodes before `node`, named after it."""

    graph: Graph
    node: Node

    def constant(self, values: np.ndarray, name: str) -> Value:
        return self.graph.constant(f"{self.node.name}_{name}", values)

    def insert(
        self, kind: str, read: Sequence[Value | None], name: str, **attributes: object
    ) -> Value:
        value = self.graph.insert(kind, read, f"{self.node.name}_{name}", before=self.node)
        maker = value.producer()
        assert maker is not None
        self.graph.set_attributes(maker, **attributes)
        return value

    def shaped(self, value: Value, dims: Sequence[int], name: str) -> Value:
        return self.insert("Reshape", [value, self.constant(np.array(dims), "shape")], name)

    def cut(self, value: Value, axis: int, begin: int, end: int, name: str) -> Value:
        bounds = [self.constant(np.array([number]), "span") for number in (begin, end, axis)]
        return self.insert("Slice", [value, *bounds], name)

    def number(self, value: float, name: str = "number") -> Value:
        return self.constant(np.array(value, np.float32), name)

    def reduced(self, kind: str, value: Value, axes: Sequence[int]) -> Value:
        """Reduces these axes, with keepdims."""
        at = self.constant(np.array(axes, np.int64), "axes")
        return self.insert(kind, [value, at], f"{kind.lower()}", keepdims=1)

    def become(self, kind: str, read: Sequence[Value | None], **attributes: object) -> bool:
        """Makes the node the last operator of its decomposition."""
        self.graph.become(self.node, kind, read, **attributes)
        return True
