"""Rewrites deprecated operators in current ones.

GroupNormalization of opset 18 to 20 has one scale and bias per group, since opset 21 one per
channel. With groups as channels, over (N, G, rest), it is an InstanceNormalization:

    (N, C, *s) -> Reshape (N, G, -1) -> InstanceNormalization -> Reshape (N, C, *s)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableSequence, Sequence

import numpy as np
import onnx

from npumake.graph.proto import bodies, nodes

BY_GROUP = range(18, 21)  # opsets with one scale per group
EPSILON = 1e-5


def replace_deprecated(proto: onnx.ModelProto) -> None:
    """Edits in place, also in branches and functions."""
    opsets = [opset.version for opset in proto.opset_import if opset.domain in ("", "ai.onnx")]
    if not set(opsets) & set(BY_GROUP):
        return
    names = {name for node in nodes(proto) for name in (node.name, *node.input, *node.output)}
    dims = _held_dims(proto)
    for siblings in _holders(proto):
        replaced = [new for node in siblings for new in _in_others(node, names, dims)]
        if len(replaced) > len(siblings):
            del siblings[:]
            siblings.extend(replaced)


def _held_dims(proto: onnx.ModelProto) -> dict[str, list[int]]:
    """The shapes of constants."""
    dims = {tensor.name: list(tensor.dims) for tensor in proto.graph.initializer}
    for node in nodes(proto):
        for item in node.attribute if node.op_type == "Constant" else ():
            value = onnx.helper.get_attribute_value(item)
            is_tensor = isinstance(value, onnx.TensorProto)
            dims[node.output[0]] = list(value.dims if is_tensor else np.shape(value))
    return dims


def _holders(proto: onnx.ModelProto) -> Iterator[MutableSequence[onnx.NodeProto]]:
    """Every list of nodes; nested lists come first."""
    for siblings in (proto.graph.node, *(function.node for function in proto.functions)):
        yield from _within(siblings)
        yield siblings


def _within(siblings: Iterable[onnx.NodeProto]) -> Iterator[MutableSequence[onnx.NodeProto]]:
    for node in siblings:
        for body in bodies(node):
            yield from _within(body.node)
            yield body.node


def _in_others(
    node: onnx.NodeProto, names: set[str], constant_dims: Mapping[str, Sequence[int]]
) -> list[onnx.NodeProto]:
    if node.op_type != "GroupNormalization" or node.domain not in ("", "ai.onnx"):
        return [node]
    attributes = {item.name: onnx.helper.get_attribute_value(item) for item in node.attribute}
    x, scale, bias = node.input
    (output,) = node.output
    name = node.name or output
    sizes, whole, groups, normal = (
        _free(f"{name}_{suffix}", names) for suffix in ("sizes", "shape", "groups", "normalized")
    )
    dims = onnx.numpy_helper.from_array(
        np.array([0, attributes["num_groups"], -1], np.int64), sizes
    )
    make = onnx.helper.make_node
    epsilon = attributes.get("epsilon", EPSILON)
    count = [attributes["num_groups"]]
    spread = [new for value in (scale, bias) for new in _spread(value, count, names, constant_dims)]
    scale, bias = (_spread_name(spread, value) for value in (scale, bias))
    return [
        *spread,
        make("Constant", [], [sizes], sizes, value=dims),
        make("Shape", [x], [whole], whole),
        make("Reshape", [x, sizes], [groups], groups),
        make("InstanceNormalization", [groups, scale, bias], [normal], name, epsilon=epsilon),
        make("Reshape", [normal, whole], [output], _free(f"{name}_whole", names)),
    ]


def _spread(
    value: str, count: list[int], names: set[str], constant_dims: Mapping[str, Sequence[int]]
) -> list[onnx.NodeProto]:
    """A constant scale or bias as a list with a number per group, as the operator's function
    broadcasts it: it may hold one number, or have axes of size 1."""
    if constant_dims.get(value, count) == count:
        return []
    row, flat, size, whole = (
        _free(f"{value}_{suffix}", names) for suffix in ("row", "flat", "size", "by_group")
    )
    make, from_array = onnx.helper.make_node, onnx.numpy_helper.from_array
    return [
        make("Constant", [], [row], row, value=from_array(np.array([-1], np.int64), row)),
        make("Reshape", [value, row], [flat], flat),
        make("Constant", [], [size], size, value=from_array(np.array(count, np.int64), size)),
        make("Expand", [flat, size], [whole], whole),
    ]


def _spread_name(spread: Sequence[onnx.NodeProto], value: str) -> str:
    """What the nodes make of the value; itself if they make nothing of it."""
    next_name = {node.input[0]: node.output[0] for node in spread if node.input}
    while value in next_name:
        value = next_name[value]
    return value


def _free(name: str, names: set[str]) -> str:
    while name in names:
        name += "_"
    names.add(name)
    return name
