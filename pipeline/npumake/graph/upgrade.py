"""Upgrades a model to the working opset without changing its results.

onnx's own converter does it, but is wrong about the operators in OLD_MEANING, listed by the opset
that changed them.
"""

from __future__ import annotations

import onnx
import onnx_ir as ir

from npumake.errors import GraphError
from npumake.graph.graph import Graph
from npumake.graph.match import array, attribute
from npumake.graph.origin import trace
from npumake.graph.parse import first_line, normal

INITIALIZERS_ALONE = 4  # since this IR version an initializer need not be an input
MIN_OPSET = 7  # the oldest opset that onnx's converter accepts
WORKING_IR = 10  # the newest IR version that adds information
WORKING_OPSET = 20  # the first with Gelu; HardSwish, LayerNormalization and Mish are older


def upgraded(graph: Graph, opset: int = WORKING_OPSET) -> Graph:
    """The same model at `opset`, or at the newer one its operators need, by onnx's converter.

    Raises GraphError.
    """
    if graph.opset >= opset:
        return _without_claims(graph, opset)
    if graph.opset < MIN_OPSET:
        raise GraphError(
            f"the model uses opset {graph.opset}; the oldest supported is {MIN_OPSET}",
            hint=f"export it again with opset {opset} or newer",
        )
    proto = ir.to_proto(graph.model)
    proto.ir_version = max(proto.ir_version, INITIALIZERS_ALONE)
    try:
        converted = onnx.version_converter.convert_version(proto, opset)
    except (onnx.version_converter.ConvertError, RuntimeError, ValueError) as error:
        raise GraphError(
            f"the model cannot be upgraded from opset {graph.opset} to {opset}: "
            f"{first_line(error)}",
            hint=f"export it again with opset {opset} or newer",
        ) from error
    result = normal(ir.from_proto(converted))
    trace(result.model.graph, graph.model.graph)
    for before, keep in OLD_MEANING.items():
        if graph.opset < before:
            keep(result)
    return result


def _without_claims(graph: Graph, opset: int) -> Graph:
    """Lowers the declared opset and IR version to those that the model uses, since the runtime may
    be older than the exporter."""
    used = [
        onnx.defs.get_schema(node.op_type, graph.opset, "").since_version
        for node in graph.model.graph.all_nodes()
        if not node.domain
    ]
    graph.model.graph.opset_imports[""] = min(graph.opset, max((opset, *used)))
    graph.model.ir_version = min(graph.model.ir_version, WORKING_IR)
    return graph


def _keep_old_resize(graph: Graph) -> None:
    """Before opset 11 pixel i of a Resize or Upsample was i / scale. The converter leaves the new
    default, half_pixel, which differs."""
    for node in graph.nodes("Resize"):
        graph.set_attributes(
            node,
            coordinate_transformation_mode="asymmetric",
            nearest_mode=_old_nearest_mode(node),
        )


def _old_nearest_mode(resize: ir.Node) -> str:
    """Old onnxruntime rounded i / scale up on an axis that shrinks, down otherwise. Raises
    GraphError if one mode cannot express both."""
    scales = array(resize.inputs[2])
    if scales is None or not (scales < 1).any():
        return "floor"
    if scales.max() > 1 and attribute(resize, "mode") == "nearest":
        raise GraphError(f"`{resize.name}` shrinks one axis and enlarges another by `nearest`")
    return "ceil"


def _keep_old_hardmax(graph: Graph) -> None:
    """Before opset 13 Hardmax had one maximum over all axes from `axis` on. The converter leaves
    `axis`, which now means only that axis."""
    for node in graph.nodes("Hardmax"):
        flatten_around(graph, node, attribute(node, "axis", 1))


def flatten_around(graph: Graph, node: ir.Node, axis: int) -> None:
    """Makes a one-axis node compute over all axes from `axis` on: Flatten before it, Reshape behind
    it."""
    x, output, readers = node.inputs[0], node.outputs[0], _readers(node)
    flat = graph.insert("Flatten", [x], f"{output.name}_flat", before=node, axis=axis)
    dims = graph.insert("Shape", [x], f"{output.name}_shape", before=node)
    graph.become(node, node.op_type, [flat], axis=-1)
    graph.forget_shape(output)
    whole = graph.insert("Reshape", [output, dims], f"{output.name}_whole", after=node)
    graph.replace_readers(output, whole, readers)
    if output.is_graph_output():
        graph.replace_output(output, whole)


def _readers(node: ir.Node) -> list[ir.Node]:
    return [use.node for use in node.outputs[0].uses()]


OLD_MEANING = {11: _keep_old_resize, 13: _keep_old_hardmax}
