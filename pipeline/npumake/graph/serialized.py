"""A graph as it is written: its nodes as protobuf, of which other models are put together.

A Graph knows every use of every value, which takes longer to set up than many a model to run. Who
asks the same graph hundreds of questions writes it once, and then only puts together what is asked:
nodes, and copies of them under other names.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import starmap
from typing import NamedTuple

import numpy as np
import onnx
from onnx_ir.serde import serialize_node, serialize_tensor, serialize_value

from npumake.graph.graph import Graph, Value
from npumake.graph.match import is_foreign
from npumake.graph.proto import bodies


class SerializedNode(NamedTuple):
    """A node, the names of what it reads, by its branches and bodies too, and of what it makes:
    `like` says as what of the graph each of these is typed."""

    proto: onnx.NodeProto
    reads: tuple[str, ...]
    makes: tuple[str, ...]
    like: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.proto.name

    @property
    def op_type(self) -> str:
        return self.proto.op_type

    def renamed(self, names: Mapping[str, str]) -> SerializedNode:
        """A copy that reads and makes values of other names, where there are any; called after what
        it makes, if that is new."""
        proto = onnx.NodeProto()
        proto.CopyFrom(self.proto)
        _rename(proto, names)
        reads, makes = (tuple(names.get(n, n) for n in each) for each in (self.reads, self.makes))
        if makes != self.makes:
            proto.name = makes[0]
        return SerializedNode(proto, reads, makes, self.like)


class SerializedGraph:
    """The pieces of a graph in topological order, and its constants; `is_mixed` where some are
    operators that only the project knows. The graph is not to change: types and constants are
    written when a model needs them."""

    def __init__(self, graph: Graph) -> None:
        model, main = graph.model, graph.model.graph
        self._ir_version = model.ir_version
        self._opsets = [*starmap(onnx.helper.make_opsetid, model.opset_imports.items())]
        self._values = graph.values()
        self._types: dict[str, onnx.TypeProto | None] = {}  # as they are asked for
        self._tensors: dict[str, onnx.TensorProto] = {}
        self._constants = {
            str(name): value.const_value
            for name, value in main.initializers.items()
            if value.const_value is not None
        }
        self.pieces = tuple(_piece(serialize_node(node)) for node in main)
        self.inputs = tuple(str(value.name) for value in main.inputs)
        self.outputs = tuple(str(value.name) for value in main.outputs)
        self.is_mixed = any(map(is_foreign, main.all_nodes()))

    def is_constant(self, name: str) -> bool:
        return name in self._constants

    def array(self, name: str) -> np.ndarray | None:
        """The constant of that name."""
        constant = self._constants.get(name)
        return None if constant is None else constant.numpy()

    def size(self, name: str) -> int:
        """How many numbers a tensor holds; 1 along every axis of unknown length."""
        value = self._values.get(name)
        sides = value.shape if value is not None and value.shape is not None else ()
        return math.prod(max(side, 1) if isinstance(side, int) else 1 for side in sides)

    def mark(self) -> str:
        """What is in no name, so that names made with it are new."""
        mark = "@"
        names = {*self._values, *(piece.name for piece in self.pieces)}
        while any(mark in name for name in names):
            mark += "@"
        return mark

    def model(
        self,
        pieces: Sequence[SerializedNode],
        outputs: Iterable[str],
        constants: Mapping[str, np.ndarray] | None = None,
    ) -> bytes:
        """A model of these pieces, in order, that gives `made`: what they read is one of
        `constants`, constant in the graph, or fed."""
        own = constants or {}
        like = {name: of for piece in pieces for name, of in zip(*piece[2:], strict=True)}
        read = dict.fromkeys(n for p in pieces for n in p.reads if n not in like and n not in own)
        graph = onnx.GraphProto(
            name="part",
            node=[piece.proto for piece in pieces],
            initializer=[self._tensor(name) for name in read if name in self._constants],
            input=[self._info(name, name) for name in read if name not in self._constants],
            output=[self._info(name, like.get(name, name)) for name in outputs],
        )
        graph.initializer.extend(_tensors(own))
        # Of all others whoever reads the model finds the types as fast as it reads them.
        foreign = (name for p in pieces if is_foreign(p.proto) for name in p.makes)
        graph.value_info.extend(self._info(name, like[name]) for name in foreign)
        model = onnx.ModelProto(ir_version=self._ir_version, opset_import=self._opsets, graph=graph)
        return model.SerializeToString(deterministic=True)

    def _info(self, name: str, like: str) -> onnx.ValueInfoProto:
        if like not in self._types:
            self._types[like] = _type(self._values.get(like))
        return onnx.ValueInfoProto(name=name, type=self._types[like])

    def _tensor(self, name: str) -> onnx.TensorProto:
        if name not in self._tensors:
            tensor = serialize_tensor(self._constants[name])
            tensor.name = name
            self._tensors[name] = tensor
        return self._tensors[name]


def needed(pieces: Sequence[SerializedNode], names: Iterable[str]) -> list[SerializedNode]:
    """Of these pieces, in order, those that values of these names depend on."""
    reads, result = set(names), []
    for piece in reversed(pieces):
        if not reads.isdisjoint(piece.makes):
            reads.update(piece.reads)
            result.append(piece)
    return result[::-1]


def _type(value: Value | None) -> onnx.TypeProto | None:
    written = None if value is None else serialize_value(value)
    return written.type if written is not None and written.HasField("type") else None


def _tensors(constants: Mapping[str, np.ndarray]) -> Iterator[onnx.TensorProto]:
    for name, array in constants.items():
        yield onnx.numpy_helper.from_array(np.asarray(array, order="C"), name)


def _piece(node: onnx.NodeProto) -> SerializedNode:
    looked_up = (name for body in bodies(node) for name in _outside(body))
    reads = tuple(dict.fromkeys(name for name in (*node.input, *looked_up) if name))
    makes = tuple(name for name in node.output if name)
    return SerializedNode(node, reads, makes, makes)


def _outside(body: onnx.GraphProto) -> Iterator[str]:
    """What is read in a body and made around it."""
    own = {value.name for value in (*body.input, *body.initializer)}
    for node in body.node:
        yield from (name for name in _piece(node).reads if name not in own)
        own.update(node.output)
    yield from (value.name for value in body.output if value.name not in own)


def _rename(node: onnx.NodeProto, names: Mapping[str, str]) -> None:
    """In place. What a body makes itself is called like nothing around it: ONNX demands that."""
    node.input[:] = [names.get(name, name) for name in node.input]
    node.output[:] = [names.get(name, name) for name in node.output]
    for body in bodies(node):
        for inner in body.node:
            _rename(inner, names)
        for value in body.output:
            value.name = names.get(value.name, value.name)
