"""Builds a graph node by node, for readers of formats other than ONNX.

A reader that knows shapes gives each tensor its shape; `finished` checks ONNX's inference against
it. Other readers leave shapes to the inference.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import onnx_ir as ir

from npumake.graph.free_names import free_name
from npumake.graph.graph import Graph

IR_VERSION = 8  # the version that came with the opset
OPSET = 17  # has HardSwish; axes of a mean or maximum are still an attribute


class TensorSpec(NamedTuple):
    """Name, shape and NumPy element type of a tensor to create."""

    name: str
    shape: tuple[int, ...]
    dtype: str = "float32"


class Building:
    """A graph under construction; each new node comes last. Duplicate names get a number."""

    def __init__(
        self, inputs: Iterable[TensorSpec], name: str = "graph", reserved: Iterable[str] = ()
    ) -> None:
        """`reserved` names are kept for `input` and `rename`; no other tensor gets them."""
        self._values = dict.fromkeys(reserved, 1)
        self._nodes: dict[str, int] = {}
        values = [self._new_value(tensor) for tensor in inputs]
        self._graph = ir.Graph(values, [], nodes=[], opset_imports={"": OPSET}, name=name)

    @property
    def inputs(self) -> tuple[ir.Value, ...]:
        return tuple(self._graph.inputs)

    def input(self, tensor: TensorSpec) -> ir.Value:
        """Adds an input after the existing ones; its name is `reserved`."""
        value = _typed(ir.Value(name=tensor.name), tensor)
        self._graph.inputs.append(value)
        return value

    def constant(self, name: str, array: np.ndarray) -> ir.Value:
        value = self._new_value(TensorSpec(name, array.shape, array.dtype.name))
        value.const_value = ir.Tensor(np.asarray(array, order="C"), name=value.name)
        self._graph.register_initializer(value)
        return value

    def add(
        self,
        op_type: str,
        inputs: Sequence[ir.Value | None],
        outputs: Sequence[TensorSpec | str],
        **attributes: Any,
    ) -> tuple[ir.Value, ...]:
        """Appends a node, named after its first output, and returns its outputs. An output may be
        only a name. Attributes that are None are omitted."""
        results = [self._named(x) if isinstance(x, str) else self._new_value(x) for x in outputs]
        present = {key: value for key, value in attributes.items() if value is not None}
        first = outputs[0]
        name = free_name(first if isinstance(first, str) else first.name, self._nodes)
        self._graph.append(ir.node(op_type, inputs, present, outputs=results, name=name))
        return tuple(results)

    def rename(self, value: ir.Value, name: str, node: str, *, reserved: bool) -> None:
        """Renames a tensor to a `reserved` name, or to a unique one, and its node to
        `node`."""
        producer = value.producer()
        if producer is not None:
            producer.name = free_name(node, self._nodes)
        value.name = name if reserved else free_name(name, self._values)

    def finished(self, outputs: Mapping[str, ir.Value]) -> Graph:
        """As `to_graph`, with all shapes. Raises GraphError if shapes do not fit."""
        return self.to_graph(outputs).with_shapes()

    def to_graph(self, outputs: Mapping[str, ir.Value]) -> Graph:
        """The graph of everything that these outputs depend on. Each output gets its key as name;
        another tensor of that name is renamed.

        Inputs, constants and repeated outputs pass through an Identity.
        """
        values: list[ir.Value] = []
        for name, value in outputs.items():
            is_made = value.producer() is not None and value not in values
            values.append(value if is_made else self.add("Identity", [value], [name])[0])
        public = {str(value.name) for value in self.inputs}
        holders = {str(value.name): value for node in self._graph for value in node.outputs}
        holders |= self._graph.initializers
        for name, value in zip(outputs, values, strict=True):
            if value.name != name and name not in public:
                if (holder := holders.get(name)) is not None and holder.name == name:
                    self._give_up(holder)
                value.name = name
        self._graph.outputs[:] = values
        graph = Graph(ir.Model(self._graph, ir_version=IR_VERSION))
        graph.drop_unused()
        return graph

    def _give_up(self, value: ir.Value) -> None:
        """Renames the value to free its name."""
        constants = self._graph.initializers
        constant = constants.pop(str(value.name), None)
        value.name = free_name(str(value.name), self._values)
        if constant is not None:
            self._graph.register_initializer(value)

    def _new_value(self, tensor: TensorSpec) -> ir.Value:
        return _typed(self._named(tensor.name), tensor)

    def _named(self, name: str) -> ir.Value:
        return ir.Value(name=free_name(name, self._values))


def _typed(value: ir.Value, tensor: TensorSpec) -> ir.Value:
    value.type = ir.TensorType(ir.DataType.from_numpy(np.dtype(tensor.dtype)))
    value.shape = ir.Shape(tensor.shape)
    return value
