"""Shapes and types by onnx's inference, with one known error corrected.

A pool with ceil_mode has floor((n + pads - extent) / s) + 1 windows per axis, and one more for the
remainder unless that window would start in the end padding (ONNX specification of MaxPool and
AveragePool). onnx counts it regardless; every engine omits it. Such a pool is rewritten with floor,
and with longer end pads for windows that overhang.
"""

from __future__ import annotations

from math import prod

import onnx
import onnx_ir as ir

from npumake.errors import GraphError
from npumake.graph.domains import refuse_windows
from npumake.graph.match import attribute, is_foreign, open_dimensions, shape
from npumake.kernels.pool import pool_pads
from npumake.kernels.window import extent

POOLS = ("AveragePool", "MaxPool")
UNINFERRED = ("GroupNormalization",)
FROM_NUMBERS = ("ConstantOfShape", "Expand", "Pad", "Range", "Tile")
MAX_FOLLOWED_ELEMENTS = 1 << 20  # elements of a tensor whose values inference follows, about 0.1 s
MAX_ELEMENTS = 1 << 30  # of one tensor: a gigabyte of 8 bits, the largest documented limit


def inferred(model: ir.Model) -> ir.Model:
    """The model with all shapes and types. Raises GraphError if they do not fit."""
    if not any(_rounds_up(node) for node in model.graph):
        return _inferred(model)
    model = ir.from_proto(ir.to_proto(model))
    while True:  # in order: a pool's input must be correct before its windows are counted
        _forget_shapes(model)  # declared shapes may contain the same error
        model = _inferred(model)
        if not any(_corrected(node) for node in model.graph):
            return model


def _inferred(model: ir.Model) -> ir.Model:
    proto = ir.to_proto(model)
    follows = not any(_is_long(value) for node in _from_numbers(model) for value in node.outputs)
    if follows and any(value.shape is None for n in _from_numbers(model) for value in n.outputs):
        plain = ir.from_proto(_run(proto, follows=False))
        follows = not any(_is_long(v) for node in _from_numbers(plain) for v in node.outputs)
    inferred = ir.from_proto(_run(proto, follows))
    _refuse_huge(inferred)
    refuse_windows(inferred.graph)
    return inferred


def _run(proto: onnx.ModelProto, follows: bool) -> onnx.ModelProto:
    """onnx's inference. With `follows` it also follows values in tensors of rank 1. UNINFERRED
    operators are treated as Identity.

    If declared shapes contradict it, the operators win, as in onnxruntime.
    """
    unknown = [node for node in proto.graph.node if node.op_type in UNINFERRED and not node.domain]
    names = {node.output[0]: node.op_type for node in unknown}
    for node in unknown:
        node.op_type = "Identity"
    try:
        inferred = onnx.shape_inference.infer_shapes(proto, strict_mode=True, data_prop=follows)
    except (onnx.shape_inference.InferenceError, ValueError) as error:
        inferred = _inferred_anew(proto, follows, error)
    for node in (*unknown, *inferred.graph.node):
        if node.output and node.output[0] in names:
            node.op_type = names[node.output[0]]
    return inferred


def _inferred_anew(
    proto: onnx.ModelProto, follows: bool, contradiction: Exception
) -> onnx.ModelProto:
    """Inference without the declared shapes. Raises GraphError if that fails too."""
    try:
        return onnx.shape_inference.infer_shapes(
            _unsaid(proto), strict_mode=True, data_prop=follows
        )
    except (onnx.shape_inference.InferenceError, ValueError):
        message = f"the shapes of the model do not fit: {contradiction}"
        raise GraphError(message) from contradiction


def _unsaid(proto: onnx.ModelProto) -> onnx.ModelProto:
    """A copy without the declared shapes of ONNX operators' outputs."""
    bare = onnx.ModelProto()
    bare.CopyFrom(proto)
    foreign = {name for node in bare.graph.node if is_foreign(node) for name in node.output}
    for value in (*bare.graph.value_info, *bare.graph.output):
        if value.name not in foreign:
            value.type.tensor_type.ClearField("shape")
    return bare


def _from_numbers(model: ir.Model) -> list[ir.Node]:
    """The nodes whose output size depends on values."""
    return [node for node in model.graph if node.op_type in FROM_NUMBERS and not node.domain]


def _is_long(value: ir.Value) -> bool:
    return any(size > MAX_FOLLOWED_ELEMENTS for size in _sizes(value))


def _refuse_huge(model: ir.Model) -> None:
    computed = (value for node in model.graph for value in node.outputs)
    for value in (*model.graph.inputs, *computed):
        if prod(_sizes(value)) > MAX_ELEMENTS:
            raise GraphError(
                f"tensor `{value.name}` has the shape {list(_sizes(value))}: "
                f"more than the {MAX_ELEMENTS:,} elements a chip can hold"
            )


def _sizes(value: ir.Value) -> tuple[int, ...]:
    """The known dimensions."""
    return tuple(dim for dim in value.shape or () if isinstance(dim, int))


def _forget_shapes(model: ir.Model) -> None:
    for node in model.graph:
        if is_foreign(node):
            continue  # a foreign operator's shape was declared once and cannot be inferred again
        for value in node.outputs:
            value.shape = None


def _rounds_up(node: ir.Node) -> bool:
    explicit = attribute(node, "auto_pad", "NOTSET") == "NOTSET"
    is_pool = node.op_type in POOLS and not is_foreign(node)
    return is_pool and explicit and bool(attribute(node, "ceil_mode", 0))


def _corrected(node: ir.Node) -> bool:
    """Rewrites a miscounted pool with floor; returns whether it was one. Raises GraphError for an
    average over overhanging windows that counts its pads, which floor cannot express."""
    if not _rounds_up(node):
        return False
    x = node.inputs[0]
    if x is None or open_dimensions(x):
        return False
    spatial, kernel = shape(x)[2:], attribute(node, "kernel_shape")
    rank = len(spatial)
    strides, dilations = (attribute(node, name, (1,) * rank) for name in ("strides", "dilations"))
    declared = attribute(node, "pads", (0,) * 2 * rank)
    reached = pool_pads(spatial, kernel, declared, strides, dilations, ceil_mode=True)
    pads = [max(pair) for pair in zip(declared, reached, strict=True)]
    for axis, (n, s) in enumerate(zip(spatial, strides, strict=True)):
        begin, end = declared[axis], declared[rank + axis]
        left_over = (n + begin + end - extent(kernel[axis], dilations[axis])) % s
        if left_over and pads[rank + axis] == end:  # the window is counted but reads nothing
            break
    else:
        return False
    if attribute(node, "count_include_pad", 0) and pads != list(declared):
        raise GraphError(
            "ceil_mode omits a window on one axis and adds an overhanging one on another, "
            "with counted padding",
            str(node.name),
            "export the pool with ceil_mode = 0",
        )
    node.attributes.pop("ceil_mode")
    node.attributes.add(ir.AttrInt64s("pads", pads))
    return True
