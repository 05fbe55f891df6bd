"""Lowers a model to an older opset without changing its results, for tools that read no newer.

    axes, split       an input became an attribute               AS_ATTRIBUTE
    Softmax …         before opset 13 they flatten behind `axis`: the same only at the last axis
    HardSwish         x * HardSigmoid(x)
    new attributes    dropped where they have their default

onnx's own converter has no way down for most operators.
"""

from __future__ import annotations

from collections.abc import Mapping

import onnx
import onnx_ir as ir

from npumake.errors import GraphError
from npumake.graph.graph import Graph, Node
from npumake.graph.match import array, attribute, shape
from npumake.graph.parse import first_line

# operator: the attribute that its second input was before
AS_ATTRIBUTE: Mapping[str, str] = {
    "ReduceL1": "axes",
    "ReduceL2": "axes",
    "ReduceLogSum": "axes",
    "ReduceLogSumExp": "axes",
    "ReduceMax": "axes",
    "ReduceMean": "axes",
    "ReduceMin": "axes",
    "ReduceProd": "axes",
    "ReduceSum": "axes",
    "ReduceSumSquare": "axes",
    "Split": "split",
    "Squeeze": "axes",
    "Unsqueeze": "axes",
}
FLATTENING = ("Hardmax", "LogSoftmax", "Softmax")  # behind `axis`, before opset 13
PER_AXIS_OPSET = 13
HARD_SWISH_SLOPE = 1 / 6


def downgraded(graph: Graph, opset: int, ir_version: int | None = None) -> Graph:
    """A copy at `opset`, of an IR version at most `ir_version`. Shapes must be known.

    Raises GraphError for a node that the opset cannot express, with its name.
    """
    graph = graph.copy()
    if graph.opset > opset:
        for node in graph.nodes():
            _lower(graph, node, opset)
        graph.model.graph.opset_imports[""] = opset
    graph.model.ir_version = min(graph.model.ir_version, ir_version or graph.model.ir_version)
    graph.drop_unused()
    try:
        onnx.checker.check_model(ir.to_proto(graph.model))
    except onnx.checker.ValidationError as error:
        raise GraphError(f"opset {opset} cannot express the model: {first_line(error)}") from error
    return graph


def _lower(graph: Graph, node: Node, opset: int) -> None:
    if node.domain:
        return
    if node.op_type == "HardSwish" and opset < 14:
        x, out = node.inputs[0], node.outputs[0]
        name, slope = f"{out.name}_gate", HARD_SWISH_SLOPE
        gate = graph.insert("HardSigmoid", [x], name, before=node, alpha=slope, beta=0.5)
        graph.become(node, "Mul", [x, gate])
        return
    schema = _schema(node, opset)
    if node.op_type in FLATTENING and opset < PER_AXIS_OPSET:
        _refuse_inner_axis(node, opset)
    names = AS_ATTRIBUTE.get(node.op_type)
    if names and names in schema.attributes and len(node.inputs) > 1:
        values = array(node.inputs[1])
        if node.inputs[1] is not None and values is None:
            raise _inexpressible(node, opset, f"`{names}` is computed")
        node.resize_inputs(1)
        if values is not None:
            graph.set_attributes(node, **{names: [int(value) for value in values.ravel()]})
    _drop_new_attributes(graph, node, schema, opset)
    if len(node.inputs) > schema.max_input:
        raise _inexpressible(node, opset, f"it has {len(node.inputs)} inputs")


def _schema(node: Node, opset: int) -> onnx.defs.OpSchema:
    try:
        return onnx.defs.get_schema(node.op_type, opset, "")
    except onnx.defs.SchemaError:
        raise _inexpressible(node, opset, "the operator is newer") from None


def _refuse_inner_axis(node: Node, opset: int) -> None:
    sizes = shape(node.outputs[0])
    axis = attribute(node, "axis", -1) % len(sizes)
    if any(size != 1 for size in sizes[axis + 1 :]):
        raise _inexpressible(node, opset, f"axis {axis} is not the last one")
    node.attributes.add(ir.convenience.convert_attribute("axis", axis))


def _drop_new_attributes(graph: Graph, node: Node, schema: onnx.defs.OpSchema, opset: int) -> None:
    newest = onnx.defs.get_schema(node.op_type, graph.opset, "")
    for name in [name for name in node.attributes if name not in schema.attributes]:
        default = newest.attributes[name].default_value
        usual = onnx.helper.get_attribute_value(default) if default.name else None
        value = attribute(node, name)
        if value != (usual.decode() if isinstance(usual, bytes) else usual):
            raise _inexpressible(node, opset, f"`{name}: {value}` is newer")
        graph.set_attributes(node, **{name: None})


def _inexpressible(node: Node, opset: int, why: str) -> GraphError:
    message = f"opset {opset} cannot express `{node.name}` ({node.op_type}): {why}"
    return GraphError(message, str(node.name))
