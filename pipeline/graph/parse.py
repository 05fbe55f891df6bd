"""ONNX from a stranger: checked before anything else looks at it."""

from __future__ import annotations

from collections.abc import Iterator

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
from pipeline.graph.match import array, attribute
from pipeline.graph.origin import originate, trace

INITIALIZERS_ALONE = 4  # the IR version since which an initializer need not be an input
ONNX_DOMAINS = ("", "ai.onnx")  # two spellings of one
MIN_OPSET = 7  # the oldest onnx's converter upgrades
WORKING_OPSET = 20  # the first with Gelu; HardSwish, LayerNormalization and Mish came before


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
    _refuse_unsupported(proto, name)
    try:
        onnx.checker.check_model(proto)
        return _readable(_normal(ir.from_proto(proto)))
    except (onnx.checker.ValidationError, ir.serde.SerdeError, TypeError, ValueError) as error:
        raise GraphError(f"not a valid ONNX model: {first_line(error)}", name) from error


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
    trace(result.model.graph, graph.model.graph)
    if graph.opset < 11:
        _keep_old_resize(result)
    return result


def _keep_old_resize(graph: Graph) -> None:
    """Before opset 11 pixel i of a Resize or Upsample came from i / scale. The converter leaves
    the new default, half_pixel, which computes something else."""
    for node in graph.nodes("Resize"):
        graph.set_attributes(
            node,
            coordinate_transformation_mode="asymmetric",
            nearest_mode=_old_nearest_mode(node),
        )


def _old_nearest_mode(resize: ir.Node) -> str:
    """onnxruntime rounded i / scale up along an axis that shrinks, else down. Raises GraphError
    where no one mode says the same."""
    scales = array(resize.inputs[2])
    if scales is None or not (scales < 1).any():
        return "floor"
    if scales.max() > 1 and attribute(resize, "mode") == "nearest":
        raise GraphError(f"`{resize.name}` shrinks one axis and enlarges another by `nearest`")
    return "ceil"


def first_line(error: BaseException) -> str:
    """ONNX explains itself in many lines; the first says what, the rest where in its own code."""
    while error.__cause__:
        error = error.__cause__
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__


def _refuse_unsupported(proto: onnx.ModelProto, name: str) -> None:
    if proto.functions:
        raise GraphError(
            "the model defines operators of its own, which is not supported yet",
            name,
            "write them out: onnx.save(onnx.inliner.inline_local_functions(onnx.load(PATH)), PATH)",
        )
    if proto.graph.sparse_initializer:
        raise GraphError("the model has sparse weights, which are not supported yet", name)
    for tensor in _tensors(proto.graph):
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            raise GraphError(
                f"the weight `{tensor.name}` lies in another file, which is not supported yet",
                name,
                "save the model in one file: onnx.save(onnx.load(PATH), PATH)",
            )
    if all(opset.domain not in ONNX_DOMAINS for opset in proto.opset_import):
        raise GraphError("the model does not say which ONNX opset it uses", name)
    made = [value.name for value in proto.graph.output]
    if len(set(made)) < len(made):
        raise GraphError("two outputs of the model have the same name", name)


def _tensors(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    """Every tensor, those in branches and loop bodies too."""
    yield from graph.initializer
    for node in graph.node:
        for held in node.attribute:
            yield from (held.t, *held.tensors)
            for body in (held.g, *held.graphs):
                yield from _tensors(body)


def _readable(graph: Graph) -> Graph:
    """The graph, if its constants hold what their shapes say and it can be written again.
    Raises what NumPy and onnx-ir raise."""
    for value in graph.model.graph.initializers.values():
        array(value)
    graph.to_bytes()
    return graph


def _normal(model: ir.Model) -> Graph:
    """Constants are initializers, nodes are sorted, names are unique and nothing is nameless;
    every node comes from itself."""
    imports = model.graph.opset_imports
    if "ai.onnx" in imports:
        imports[""] = imports.pop("ai.onnx")
    LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0)(model)
    TopologicalSortPass()(model)
    # Before IR version 4 every initializer was listed as an input; since then it is a default
    # that could be overridden. Here it is a constant.
    fed = [value for value in model.graph.inputs if value.name not in model.graph.initializers]
    model.graph.inputs[:] = fed
    for node in model.graph:
        if node.outputs:
            node.name = node.name or node.outputs[0].name  # called after what it makes
    NameFixPass()(model)
    for node in model.graph:
        originate(node, [str(node.name)])
    return Graph(model)
