"""A model with other outputs than its graph's, to be run once and not stored.

It is serialized directly from the graph. Copying and editing the graph first takes twice as long,
which for a small model equals a dozen runs. Types of inner tensors are omitted, which halves the
rest: onnxruntime infers them, except in other domains.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import onnx
import onnx_ir as ir
from onnx_ir import serde

from npumake.graph.graph import Graph


@dataclass(frozen=True)
class ExtraOutput:
    """An output `name`, computed by one more node from the tensor `of`."""

    name: str
    op_type: str
    of: str
    attributes: Mapping[str, int | Sequence[int]] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name


def with_outputs(graph: Graph, outputs: Iterable[str | ExtraOutput]) -> bytes:
    """The serialized model with these outputs: tensors of the graph, and computed ones."""
    model = _model(graph.model)
    values = graph.values()
    typed: list[str] = []
    for output in outputs:
        if isinstance(output, ExtraOutput):
            model.graph.node.append(_node(output))
            model.graph.output.add(name=output.name)
            typed.append(output.of)
        else:
            serde.serialize_value_into(model.graph.output.add(), values[output])
    if any(node.domain for node in graph.nodes()):
        typed = list(values)
    written = {value.name for value in (*model.graph.input, *model.graph.output)}
    for name in dict.fromkeys(typed):
        if name not in written:
            serde.serialize_value_into(model.graph.value_info.add(), values[name])
    return model.SerializeToString(deterministic=True)


def _model(model: ir.Model) -> onnx.ModelProto:
    """Nodes, inputs and initializers, without the origins of nodes, which a run does not
    need."""
    proto = onnx.ModelProto(ir_version=model.ir_version, graph=onnx.GraphProto(name="watched"))
    for domain, version in model.opset_imports.items():
        proto.opset_import.add(domain=domain, version=version)
    for function in model.functions.values():
        serde.serialize_function_into(proto.functions.add(), function)
    for value in model.graph.inputs:
        serde.serialize_value_into(proto.graph.input.add(), value)
    for value in model.graph.initializers.values():
        if value.const_value is not None:
            tensor = proto.graph.initializer.add()
            serde.serialize_tensor_into(tensor, value.const_value)
            tensor.name = str(value.name)
    for node in model.graph:
        written = proto.graph.node.add()
        serde.serialize_node_into(written, node)
        written.ClearField("metadata_props")
    return proto


def _node(extra: ExtraOutput) -> onnx.NodeProto:
    attributes = [
        onnx.helper.make_attribute(name, value) for name, value in extra.attributes.items()
    ]
    return onnx.NodeProto(
        op_type=extra.op_type,
        input=[extra.of],
        output=[extra.name],
        name=extra.name,
        attribute=attributes,
    )
