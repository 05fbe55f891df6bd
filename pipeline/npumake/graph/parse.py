"""Reads and checks untrusted ONNX files, before any other module."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import google.protobuf.message
import onnx
import onnx_ir as ir
from onnx_ir.passes.common import (
    InlinePass,
    LiftConstantsToInitializersPass,
    NameFixPass,
    TopologicalSortPass,
)

from npumake.errors import GraphError
from npumake.graph.deprecated import replace_deprecated
from npumake.graph.domains import refuse_odd_attributes
from npumake.graph.graph import Graph
from npumake.graph.match import array
from npumake.graph.origin import originate
from npumake.graph.outside import Beside, bring_inside
from npumake.graph.proto import (
    at_one_opset,
    densify,
    nodes,
    open_unknown_sizes,
    refuse_endless_calls,
)

INITIALIZERS_ARE_INPUTS = 3  # the last IR version where they all are
ONNX_DOMAINS = ("", "ai.onnx")  # two spellings of the same domain


def parse(data: bytes, name: str, beside: Sequence[Beside] = ()) -> Graph:
    """The graph of an ONNX file called `name`, with external weights in the files `beside` it.

    Raises GraphError for any defect.
    """
    try:
        proto = onnx.load_from_string(data)
    except (google.protobuf.message.DecodeError, ValueError) as error:
        raise GraphError(
            "not an ONNX model: the file is damaged or of another format", name
        ) from error
    if not proto.graph.node and not proto.graph.output:
        raise GraphError("not an ONNX model: it holds no graph", name)
    try:
        _refuse_unsupported(proto)
        return _checked(proto, beside)
    except GraphError as error:
        error.where = error.where or name
        raise
    except (
        onnx.checker.ValidationError,
        ir.passes.PassError,
        ir.serde.SerdeError,
        KeyError,
        TypeError,
        ValueError,
    ) as error:
        raise GraphError(f"not a valid ONNX model: {first_line(error)}", name) from error


def _checked(proto: onnx.ModelProto, beside: Sequence[Beside]) -> Graph:
    """Raises GraphError, or the exceptions of onnx, onnx-ir and NumPy for an invalid model."""
    bring_inside(proto, beside)
    densify(proto)
    open_unknown_sizes(proto)
    refuse_endless_calls(proto)
    at_one_opset(proto)
    _import_domains(proto)
    replace_deprecated(proto)
    with _all_shaped(proto.graph.output), _constants_apart(proto):
        onnx.checker.check_model(proto)
    graph = _readable(normal(InlinePass()(ir.from_proto(proto)).model))
    refuse_odd_attributes(graph.model.graph.all_nodes())
    return graph


@contextmanager
def _all_shaped(outputs: Iterable[onnx.ValueInfoProto]) -> Iterator[None]:
    """Gives every output a placeholder type and shape while onnx's checker runs: it requires them.
    onnxruntime and inference do not."""
    typeless = [value for value in outputs if not value.type.WhichOneof("value")]
    for value in typeless:
        value.type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    bare = [value.type.tensor_type for value in outputs if value.type.HasField("tensor_type")]
    bare = [tensor for tensor in bare if not tensor.HasField("shape")]
    for tensor in bare:
        tensor.shape.SetInParent()
    try:
        yield
    finally:
        for tensor in bare:
            tensor.ClearField("shape")
        for value in typeless:
            value.ClearField("type")


@contextmanager
def _constants_apart(proto: onnx.ModelProto) -> Iterator[None]:
    """Declares IR version 4 while onnx's checker runs: in version 3 it requires that every
    initializer is an input too. onnxruntime does not."""
    declared = proto.ir_version
    if declared == INITIALIZERS_ARE_INPUTS:
        proto.ir_version = INITIALIZERS_ARE_INPUTS + 1
    try:
        yield
    finally:
        proto.ir_version = declared


def parse_text(text: str) -> Graph:
    """A graph from ONNX text, for tests: `agraph (float[1,4] x) => (float[1,4] y) { y = Relu(x) }`.

    The header is optional and defaults to opset 17.
    """
    if not text.lstrip().startswith("<"):
        text = '<ir_version: 9, opset_import: ["" : 17]>\n' + text
    return normal(ir.from_onnx_text(text)).with_shapes()


def first_line(error: BaseException) -> str:
    """The first line of an error of onnx; the rest describes its own code."""
    while error.__cause__:
        error = error.__cause__
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__


def _refuse_unsupported(proto: onnx.ModelProto) -> None:
    opsets = [opset.version for opset in proto.opset_import if opset.domain in ONNX_DOMAINS]
    if not opsets:
        raise GraphError("the model does not declare its ONNX opset")
    for version, newest, standard in (
        (max(opsets), onnx.defs.onnx_opset_version(), "opset"),
        (proto.ir_version, onnx.IR_VERSION, "IR version"),
    ):
        if version > newest:
            hint = f"export it again with {standard} {newest} or older"
            raise GraphError(
                f"the model uses {standard} {version}; the newest is {newest}", hint=hint
            )
    outputs = [value.name for value in proto.graph.output]
    if len(set(outputs)) < len(outputs):
        raise GraphError("two outputs of the model have the same name")


def _import_domains(proto: onnx.ModelProto) -> None:
    """Imports version 1 of a foreign domain that the exporter omitted."""
    imported = {opset.domain for opset in proto.opset_import} | set(ONNX_DOMAINS)
    for domain in sorted({node.domain for node in nodes(proto)} - imported):
        proto.opset_import.append(onnx.helper.make_opsetid(domain, 1))


def _readable(graph: Graph) -> Graph:
    """The graph, after its constants were read and it was serialized once. Raises the exceptions of
    NumPy and onnx-ir raise."""
    for value in graph.model.graph.initializers.values():
        array(value)
    graph.to_bytes()
    return graph


def _give_constants(graph: ir.Graph) -> None:
    """An Identity produces each constant output, so that every output is an input or has a
    node."""
    for index, value in enumerate(tuple(graph.outputs)):
        name = str(value.name)
        if name not in graph.initializers:
            continue
        output = ir.Value(name=name, type=value.type, shape=value.shape)
        graph.append(ir.node("Identity", [value], outputs=[output], name=name))
        graph.outputs[index] = output
        del graph.initializers[name]
        value.name = f"{name}_constant"
        graph.register_initializer(value)


def normal(model: ir.Model) -> Graph:
    """Lifts constants to initializers, sorts nodes, makes names unique and complete, and makes
    every node its own origin."""
    imports = model.graph.opset_imports
    if "ai.onnx" in imports:
        imports[""] = imports.pop("ai.onnx")
    LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0)(model)
    TopologicalSortPass()(model)
    # Up to IR version 3 every initializer was also an input. Since then, as an input it is an
    # overridable default; here it is a constant.
    inputs = [value for value in model.graph.inputs if value.name not in model.graph.initializers]
    model.graph.inputs[:] = inputs
    _give_constants(model.graph)
    for node in model.graph:
        outputs = [value.name for value in node.outputs if value.name]
        node.name = node.name or next(iter(outputs), None)  # named after its output
    NameFixPass()(model)
    for node in model.graph.all_nodes():
        if node.op_type == "MeanVarianceNormalization" and "axes" not in node.attributes:
            # onnx infers its shape from a function body that lacks the default.
            node.attributes.add(ir.AttrInt64s("axes", (0, 2, 3)))
    for node in model.graph:
        originate(node, [str(node.name)])
    return Graph(model)
