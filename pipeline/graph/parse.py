"""ONNX from a stranger: checked before anything else looks at it."""

from __future__ import annotations

import google.protobuf.message
import onnx
import onnx_ir as ir
from onnx_ir.passes.common import (
    LiftConstantsToInitializersPass,
    NameFixPass,
    TopologicalSortPass,
)

from pipeline.errors import GraphError
from pipeline.graph.graph import Graph

INITIALIZERS_ALONE = 4  # the IR version since which an initializer need not be an input
MIN_OPSET = 7  # the oldest onnx's converter upgrades
WORKING_OPSET = 13  # the first with per-axis QuantizeLinear, which per-channel weights need


def parse(data: bytes, name: str) -> Graph:
    """The graph in an ONNX file called `name`. Raises GraphError for whatever is wrong with it."""
    try:
        proto = onnx.load_from_string(data)
    except (google.protobuf.message.DecodeError, ValueError) as error:
        raise GraphError(
            "not an ONNX model: the file is damaged or of another format", name
        ) from error
    if not proto.graph.node:
        raise GraphError("not an ONNX model: it holds no graph", name)
    _refuse_external_data(proto, name)
    try:
        onnx.checker.check_model(proto)
    except (onnx.checker.ValidationError, ValueError) as error:
        raise GraphError(f"not a valid ONNX model: {first_line(error)}", name) from error
    return _normal(ir.from_proto(proto))


def parse_text(text: str) -> Graph:
    """A graph in ONNX text, for tests: `agraph (float[1,4] x) => (float[1,4] y) { y = Relu(x) }`.

    The header may be left out; opset 17 is assumed.
    """
    if not text.lstrip().startswith("<"):
        text = '<ir_version: 9, opset_import: ["" : 17]>\n' + text
    return _normal(ir.from_onnx_text(text)).with_shapes()


def upgraded(graph: Graph, opset: int = WORKING_OPSET) -> Graph:
    """The same model at `opset` or newer, by onnx's own converter. Raises GraphError."""
    if graph.opset >= opset:
        return graph
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
    result = _normal(ir.from_proto(converted))
    if graph.opset < 11:
        _keep_old_resize(result)
    return result


def _keep_old_resize(graph: Graph) -> None:
    """Before opset 11 a Resize or Upsample read input pixel floor(i / scale); the converter
    leaves the new default, half_pixel, which computes something else."""
    for node in graph.nodes("Resize"):
        graph.set_attributes(
            node, coordinate_transformation_mode="asymmetric", nearest_mode="floor"
        )


def first_line(error: Exception) -> str:
    """ONNX explains itself in many lines; the first says what, the rest where in its own code."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__


def _refuse_external_data(proto: onnx.ModelProto, name: str) -> None:
    for tensor in proto.graph.initializer:
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            raise GraphError(
                f"the weight `{tensor.name}` lies in another file, which is not supported yet",
                name,
                "save the model in one file: onnx.save(onnx.load(PATH), PATH)",
            )


def _normal(model: ir.Model) -> Graph:
    """Constants are initializers, nodes are sorted, names are unique and no node is nameless."""
    LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0)(model)
    TopologicalSortPass()(model)
    # Before IR version 4 every initializer was listed as an input; since then it is a default
    # that could be overridden. Here it is a constant.
    fed = [value for value in model.graph.inputs if value.name not in model.graph.initializers]
    model.graph.inputs[:] = fed
    for node in model.graph:
        node.name = node.name or node.outputs[0].name  # called after what it makes
    NameFixPass()(model)
    return Graph(model)
