"""A graph serialized node by node, to assemble partial models quickly.

A Graph tracks every use of every value, which takes longer than running many a model. To run
hundreds of partial models, serialize the graph once and combine its nodes, or renamed copies of
them. Of a graph that is edited in between, serialize the part.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import starmap
from typing import NamedTuple

import numpy as np
import onnx
from onnx_ir.serde import serialize_node, serialize_tensor, serialize_value

from npumake.graph.graph import Graph, Node, Value
from npumake.graph.match import is_foreign
from npumake.graph.part import reads
from npumake.graph.proto import bodies


class SerializedNode(NamedTuple):
    """A node with the names of its inputs (also in its bodies) and outputs; `like` names the
    graph's tensor of the same type for each result."""

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
        """A copy with other names of inputs and outputs; named after its first output if that
        changed."""
        proto = onnx.NodeProto()
        proto.CopyFrom(self.proto)
        _rename(proto, names)
        reads, makes = (
            tuple(names.get(n, n) for n in tensors) for tensors in (self.reads, self.makes)
        )
        if makes != self.makes:
            proto.name = makes[0]
        return SerializedNode(proto, reads, makes, self.like)


class SerializedGraph:
    """The nodes of a graph in topological order, and its constants. `is_mixed`: it has custom
    operators. The graph must not change: types and constants are serialized on first use."""

    def __init__(self, graph: Graph) -> None:
        model, main = graph.model, graph.model.graph
        self._ir_version = model.ir_version
        self._opsets = [*starmap(onnx.helper.make_opsetid, model.opset_imports.items())]
        self._values = graph.values()
        self._types: dict[str, onnx.TypeProto | None] = {}  # filled on first use
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
        """The constant of this name."""
        constant = self._constants.get(name)
        return None if constant is None else constant.numpy()

    def size(self, name: str) -> int:
        """Number of elements of a tensor; an open dimension counts as 1."""
        value = self._values.get(name)
        sides = value.shape if value is not None and value.shape is not None else ()
        return math.prod(max(side, 1) if isinstance(side, int) else 1 for side in sides)

    def mark(self) -> str:
        """A string that occurs in no name, to build new names."""
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
        """A model of these nodes, in order, with these `outputs`. Tensors from outside are
        `constants`, constants of the graph, or inputs."""
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
        # The runtime infers the other types as fast as it would read them.
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


def serialized_part(graph: Graph, nodes: Sequence[Node], results: Iterable[Value]) -> bytes:
    """The model of `npumake.graph.part`, to run: without the types of inner values, and without a
    Graph, which takes longer to build than most parts to run."""
    inside = {value.name for node in nodes for value in node.outputs}
    read = {value.name: value for node in nodes for value in reads(node)}
    outside = [value for name, value in read.items() if name not in inside]
    written = onnx.GraphProto(
        name=nodes[0].name,
        node=[*map(serialize_node, nodes)],
        initializer=[_named(v) for v in outside if v.const_value is not None],
        input=[serialize_value(value) for value in outside if value.const_value is None],
        output=[*map(serialize_value, results)],
    )
    opsets = [*starmap(onnx.helper.make_opsetid, graph.model.opset_imports.items())]
    model = onnx.ModelProto(ir_version=graph.model.ir_version, opset_import=opsets, graph=written)
    return model.SerializeToString(deterministic=True)


def _named(value: Value) -> onnx.TensorProto:
    """The constant under the name of its value."""
    assert value.const_value is not None
    tensor = serialize_tensor(value.const_value)
    tensor.name = str(value.name)
    return tensor


def needed(pieces: Sequence[SerializedNode], names: Iterable[str]) -> list[SerializedNode]:
    """The nodes, in order, that the values of these names depend on."""
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
    """The outer values that a body reads."""
    own = {value.name for value in (*body.input, *body.initializer)}
    for node in body.node:
        yield from (name for name in _piece(node).reads if name not in own)
        own.update(node.output)
    yield from (value.name for value in body.output if value.name not in own)


def _rename(node: onnx.NodeProto, names: Mapping[str, str]) -> None:
    """Renames in place. Inner values of a body keep their names: ONNX forbids that they shadow
    outer ones."""
    node.input[:] = [names.get(name, name) for name in node.input]
    node.output[:] = [names.get(name, name) for name in node.output]
    for body in bodies(node):
        for inner in body.node:
            _rename(inner, names)
        for value in body.output:
            value.name = names.get(value.name, value.name)
