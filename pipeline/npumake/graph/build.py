"""A graph made node by node, by the readers of formats that are not ONNX.

A reader that knows shapes gives each tensor its own when it is made: `finished` holds ONNX's
inference against what the reader computed. One that does not leaves them to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import onnx_ir as ir

from npumake.graph.graph import Graph

IR_VERSION = 8  # what came with the opset
OPSET = 17  # it has HardSwish; axes of a mean or maximum are still an attribute


class TensorSpec(NamedTuple):
    """A tensor to be made: its name, shape and element type as NumPy calls it."""

    name: str
    shape: tuple[int, ...]
    dtype: str = "float32"


class Building:
    """A graph in the making, each node behind all others. Names are made unique, never refused."""

    def __init__(
        self, inputs: Iterable[TensorSpec], name: str = "graph", reserved: Iterable[str] = ()
    ) -> None:
        """`reserved` are names for `input` and `rename` to give; no other tensor gets them."""
        self._values = dict.fromkeys(reserved, 1)
        self._nodes: dict[str, int] = {}
        values = [self._new_value(tensor) for tensor in inputs]
        self._graph = ir.Graph(values, [], nodes=[], opset_imports={"": OPSET}, name=name)

    @property
    def inputs(self) -> tuple[ir.Value, ...]:
        return tuple(self._graph.inputs)

    def input(self, tensor: TensorSpec) -> ir.Value:
        """One more input, behind those there are; its name is `reserved` for it."""
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
        """A node called after its first output; what it makes, of which no more than the name may
        be known. An attribute that is None is left out."""
        results = [self._named(x) if isinstance(x, str) else self._new_value(x) for x in outputs]
        present = {key: value for key, value in attributes.items() if value is not None}
        first = outputs[0]
        name = _free(first if isinstance(first, str) else first.name, self._nodes)
        self._graph.append(ir.node(op_type, inputs, present, outputs=results, name=name))
        return tuple(results)

    def rename(self, value: ir.Value, name: str, node: str, *, reserved: bool) -> None:
        """Call a tensor `name`, which is `reserved` for it or made unique, and the node that
        makes it `node`."""
        producer = value.producer()
        if producer is not None:
            producer.name = _free(node, self._nodes)
        value.name = name if reserved else _free(name, self._values)

    def finished(self, outputs: Mapping[str, ir.Value]) -> Graph:
        """As `drawn`, with every shape. Raises GraphError where shapes do not fit."""
        return self.to_graph(outputs).with_shapes()

    def to_graph(self, outputs: Mapping[str, ir.Value]) -> Graph:
        """The graph of what these outputs depend on, each under its name; who had that name gets
        another.

        An input, a constant or a tensor that is an output already passes through an Identity.
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
        """It gets another name."""
        constants = self._graph.initializers
        constant = constants.pop(str(value.name), None)
        value.name = _free(str(value.name), self._values)
        if constant is not None:
            self._graph.register_initializer(value)

    def _new_value(self, tensor: TensorSpec) -> ir.Value:
        return _typed(self._named(tensor.name), tensor)

    def _named(self, name: str) -> ir.Value:
        return ir.Value(name=_free(name, self._values))


def _typed(value: ir.Value, tensor: TensorSpec) -> ir.Value:
    value.type = ir.TensorType(ir.DataType.from_numpy(np.dtype(tensor.dtype)))
    value.shape = ir.Shape(tensor.shape)
    return value


def _free(name: str, suffixes: dict[str, int]) -> str:
    """`name`, with a number behind it when it is taken; from now on it is.

    `taken` holds the number to try next, so that a thousand of one name cost a thousand steps.
    """
    free = name
    while free in suffixes:
        free = f"{name}_{suffixes[name]}"
        suffixes[name] += 1
    suffixes[free] = 1
    return free
