"""The interface of a GraphDef: nodes, their inputs, and the shapes of placeholders.

Fields are those of tensorflow/core/framework/graph.proto and its imports; all others are preserved
unread.

Inputs are the placeholders. If a model starts by decoding a file or computing a spectrogram, the
inputs are the results of these nodes instead: they run on a host, not on an NPU.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from npumake.errors import GraphError

Message = Any  # created from FIELDS, without static types

FIELDS = {  # message → its fields: name, number, type; `*` for repeated
    "Dim": (("size", 1, "int64"),),
    "Shape": (("dim", 2, "Dim*"), ("unknown_rank", 3, "bool")),
    "Tensor": (("shape", 2, "Shape"),),
    "Value": (("shape", 7, "Shape"), ("tensor", 8, "Tensor")),
    "Attribute": (("key", 1, "string"), ("value", 2, "Value")),
    "Node": (
        ("name", 1, "string"),
        ("op", 2, "string"),
        ("input", 3, "string*"),
        ("attr", 5, "Attribute*"),
    ),
    "GraphDef": (("node", 1, "Node*"),),
}
NAME = re.compile(r"[A-Za-z0-9.][A-Za-z0-9_.\\/>-]*")  # TensorFlow's own rule
PLACEHOLDERS = frozenset({"Placeholder", "PlaceholderWithDefault", "PlaceholderV2"})
VARIABLES = frozenset({"VarHandleOp", "Variable", "VariableV2"})
HOST = frozenset(
    {
        "AudioSpectrogram",
        "DecodeBmp",
        "DecodeGif",
        "DecodeImage",
        "DecodeJpeg",
        "DecodePng",
        "DecodeRaw",
        "DecodeWav",
        "IteratorGetNext",
        "Mfcc",
    }
)
CONVOLUTIONS = frozenset({"Conv2D", "DepthwiseConv2dNative"})
NO_RESULT = frozenset({"Assert", "Const", "NoOp", "Placeholder", "PlaceholderWithDefault"})


@dataclass(frozen=True)
class GraphDef:
    """A frozen graph: its bytes with all input shapes, and its inputs and outputs by node name
    (tensor `node:0`)."""

    data: bytes
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


def read_graphdef(data: bytes, name: str) -> GraphDef:
    """Raises GraphError for a file that is not a frozen GraphDef, or without inputs or
    outputs."""
    graph = _GRAPH_DEF()
    try:
        graph.ParseFromString(data)
    except DecodeError as error:
        raise GraphError("not a TensorFlow graph: the file is damaged", name) from error
    nodes = {node.name: node for node in graph.node}
    if not nodes or any(not NAME.fullmatch(node_name) for node_name in nodes):
        raise GraphError(
            "not a frozen TensorFlow graph: of a SavedModel, or of another format",
            name,
            "freeze the model into one GraphDef, or export it to ONNX",
        )
    if variables := sorted(node.name for node in graph.node if node.op in VARIABLES):
        message = f"the TensorFlow graph is not frozen: `{variables[0]}` is a variable"
        raise GraphError(message, name, "write its variables as constants")
    read = {_node(source) for node in graph.node for source in node.input}
    outputs = [n.name for n in graph.node if n.name not in read and n.op not in NO_RESULT]
    feeds = _feeds(nodes, outputs, name)
    inputs = [node.name for node in graph.node if node.name in feeds]
    if not inputs or not outputs:
        raise GraphError("the TensorFlow graph has no input or no output", name)
    for node_name in inputs:
        _complete_shape(nodes, nodes[node_name])
    return GraphDef(graph.SerializeToString(), tuple(inputs), tuple(outputs))


def _feeds(nodes: dict[str, Message], outputs: list[str], name: str) -> set[str]:
    """The placeholders and host nodes that the outputs depend on, without those behind a host
    node."""
    feeds, visited, waiting = set(), set(outputs), list(outputs)
    while waiting:
        node = nodes.get(waiting.pop())
        if node is None:
            raise GraphError("the TensorFlow graph reads a node that does not exist", name)
        if node.op in PLACEHOLDERS | HOST:
            feeds.add(node.name)
            continue
        before = {_node(source) for source in node.input} - visited
        visited |= before
        waiting += sorted(before)
    return feeds


def _complete_shape(nodes: dict[str, Message], placeholder: Message) -> None:
    """Old exporters omit a placeholder's shape, which now means a scalar. A convolution of it gives
    (batch, height, width, channels of the filter)."""
    attributes = {entry.key: entry.value for entry in placeholder.attr}
    if placeholder.op not in PLACEHOLDERS or (
        "shape" in attributes and attributes["shape"].shape.dim
    ):
        return
    for weight in _filters(nodes, placeholder.name):
        value = attributes.get("shape") or _attribute(placeholder, "shape")
        value.shape.unknown_rank = False
        for size in (-1, -1, -1, weight[2]):
            value.shape.dim.add().size = size
        return


def _filters(nodes: dict[str, Message], name: str) -> Iterator[list[int]]:
    """Shapes (height, width, inputs, outputs) of the constant filters applied to `name`."""
    for node in nodes.values():
        if node.op in CONVOLUTIONS and len(node.input) > 1 and _node(node.input[0]) == name:
            constant = nodes.get(_node(node.input[1]))
            for entry in constant.attr if constant is not None else ():
                sizes = [dim.size for dim in entry.value.tensor.shape.dim]
                if entry.key == "value" and len(sizes) == 4:
                    yield sizes


def _attribute(node: Message, key: str) -> Message:
    entry = node.attr.add()
    entry.key = key
    return entry.value


def _node(source: str) -> str:
    """The node of an input: `node`, `node:1`, or the control input `^node`."""
    return source.removeprefix("^").partition(":")[0]


def _message_class() -> Any:
    file = FileDescriptorProto(name="npumake/graphdef.proto", package="npumake", syntax="proto3")
    for message, fields in FIELDS.items():
        described = file.message_type.add(name=message)
        for name, number, kind in fields:
            many, kind = kind.endswith("*"), kind.rstrip("*")
            field = described.field.add(name=name, number=number)
            field.label = (
                FieldDescriptorProto.LABEL_REPEATED if many else FieldDescriptorProto.LABEL_OPTIONAL
            )
            if kind in FIELDS:
                field.type = FieldDescriptorProto.TYPE_MESSAGE
                field.type_name = f".npumake.{kind}"
            else:
                field.type = FieldDescriptorProto.Type.Value(f"TYPE_{kind.upper()}")
    pool = DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return GetMessageClass(pool.FindMessageTypeByName("npumake.GraphDef"))


_GRAPH_DEF = _message_class()
