"""Front: a chain of nodes in front of a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from npumake.graph import Graph, Node, Value, type_number


class Front:
    """`add` appends to the chain, before the model's own nodes."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._last: Node | None = None

    def add(self, op_type: str, inputs: Sequence[Value], name: str, **attributes: Any) -> Value:
        output = self.graph.insert(op_type, inputs, name, self._last, **attributes)
        self._last = output.producer()
        return output

    def integers(self, name: str, *numbers: int) -> Value:
        """A constant of int32 numbers."""
        return self.graph.constant(name, np.array(numbers, np.int32))

    def floats(self, name: str, array: np.ndarray) -> Value:
        """A constant, as float32."""
        return self.graph.constant(name, array.astype(np.float32))

    def cast(self, value: Value, dtype: str, name: str) -> Value:
        return self.add("Cast", [value], name, to=type_number(dtype))

    def resize(self, value: Value, sizes: Sequence[int], mode: str, name: str) -> Value:
        """Resizes to `sizes`: `linear` between pixel centers, `nearest` repeats pixels."""
        target = self.graph.constant(f"{name}_sizes", np.array(sizes, np.int64))
        empty = self.graph.constant(f"{name}_none", np.zeros(0, np.float32))
        how = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
        attributes = how if mode == "nearest" else {}
        return self.add("Resize", [value, empty, empty, target], name, mode=mode, **attributes)
