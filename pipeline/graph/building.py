"""Building: a graph made node by node, by whoever reads another format.

Every tensor is given its shape when it is made, so `finished` can hold ONNX's own inference
against what the reader computed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import onnx_ir as ir

from pipeline.graph.graph import Graph

IR_VERSION = 8  # what came with the opsets around the working one

Shape = tuple[int, ...]

OPSET = 13  # of the nodes built: axes of a reduction are still an attribute


class Tensor(NamedTuple):
    """A tensor to be made: its name, shape and element type as NumPy calls it."""

    name: str
    shape: Shape
    dtype: str = "float32"


class Building:
    """A graph in the making, at the working opset. Names are made unique, never refused."""

    def __init__(self, name: str, inputs: Iterable[Tensor], reserved: Iterable[str] = ()) -> None:
        """`reserved` are names for `rename` to give; no other tensor gets them."""
        self._inputs = [_value(tensor) for tensor in inputs]
        fed = (str(value.name) for value in self._inputs)
        self._values = dict.fromkeys([*fed, *reserved], 1)
        self._nodes: dict[str, int] = {}
        self._graph = ir.Graph(self._inputs, [], nodes=[], opset_imports={"": OPSET}, name=name)

    @property
    def inputs(self) -> Mapping[str, ir.Value]:
        return {str(value.name): value for value in self._inputs}

    def constant(self, name: str, array: np.ndarray) -> ir.Value:
        """A constant of float32, or of int64 when `array` holds integers."""
        kind = np.int64 if np.issubdtype(array.dtype, np.integer) else np.float32
        name = _free(name, self._values)
        tensor = ir.tensor(np.asarray(array, dtype=kind, order="C"), name=name)
        value = _value(Tensor(name, tuple(array.shape), np.dtype(kind).name))
        value.const_value = tensor
        self._graph.register_initializer(value)
        return value

    def add(
        self,
        op_type: str,
        inputs: Sequence[ir.Value | None],
        outputs: Sequence[Tensor],
        **attributes: Any,
    ) -> tuple[ir.Value, ...]:
        """A node behind all others, called after its first output; what it makes."""
        made = [_value(t._replace(name=_free(t.name, self._values))) for t in outputs]
        given = {key: value for key, value in attributes.items() if value is not None}
        name = _free(outputs[0].name, self._nodes)
        self._graph.append(ir.node(op_type, inputs, given, outputs=made, name=name))
        return tuple(made)

    def rename(self, value: ir.Value, name: str, node: str, *, reserved: bool) -> None:
        """Call a tensor `name`, which is `reserved` for it or made unique, and the node that
        makes it `node`."""
        producer = value.producer()
        if producer is not None:
            producer.name = _free(node, self._nodes)
        value.name = name if reserved else _free(name, self._values)

    def finished(self, outputs: Iterable[ir.Value]) -> Graph:
        """The graph of what these outputs depend on. Raises GraphError where shapes do not fit."""
        self._graph.outputs[:] = list(outputs)
        graph = Graph(ir.Model(self._graph, ir_version=IR_VERSION))
        graph.drop_unused()
        return graph.with_shapes()


def _value(tensor: Tensor) -> ir.Value:
    kind = ir.TensorType(ir.DataType.from_numpy(np.dtype(tensor.dtype)))
    return ir.Value(name=tensor.name, type=kind, shape=ir.Shape(tensor.shape))


def _free(name: str, taken: dict[str, int]) -> str:
    """`name`, with a number behind it when it is taken; from now on it is.

    `taken` holds the number to try next, so that a thousand of one name cost a thousand steps.
    """
    free = name
    while free in taken:
        free = f"{name}_{taken[name]}"
        taken[name] += 1
    taken[free] = 1
    return free
