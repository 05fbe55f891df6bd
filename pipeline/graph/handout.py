"""A model that hands out other tensors than it was made to: to be run, not to be kept.

Written from the graph as it is. A copy of the graph, edited and then written, is the same model and
takes twice as long, which for a small one is as long as a dozen runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import onnx
import onnx_ir as ir

from pipeline.graph.graph import Graph


@dataclass(frozen=True)
class Made:
    """A tensor `name` that one more node makes of the tensor `of`."""

    name: str
    op_type: str
    of: str
    attributes: Mapping[str, int | Sequence[int]] = field(default_factory=dict)


def handing_out(graph: Graph, handed: Iterable[str | Made]) -> bytes:
    """The model, whose outputs are these: tensors that it has, and new ones."""
    proto = ir.to_proto(graph.model)
    known = (*proto.graph.input, *proto.graph.value_info, *proto.graph.output)
    typed = {value.name: value for value in known}
    del proto.graph.output[:]
    for one in handed:
        if isinstance(one, Made):
            proto.graph.node.append(_node(one))
        name = one if isinstance(one, str) else one.name
        proto.graph.output.append(typed.get(name) or onnx.ValueInfoProto(name=name))
    for node in proto.graph.node:  # where it comes from is nothing to who runs it
        node.ClearField("metadata_props")
    return proto.SerializeToString(deterministic=True)


def _node(made: Made) -> onnx.NodeProto:
    given = [onnx.helper.make_attribute(name, value) for name, value in made.attributes.items()]
    return onnx.NodeProto(
        op_type=made.op_type, input=[made.of], output=[made.name], name=made.name, attribute=given
    )
