"""Starts a model at inner tensors: they become its inputs.

Nodes and inputs that only lead up to them are dropped. Inside a network read from NHWC, feature
maps are channels first. A shape in the file's order puts a Transpose behind the new input.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from npumake.errors import ProjectError, Route, did_you_mean
from npumake.graph import Graph, Node, Value, feed_at, producer
from npumake.graph.qdq import QDQ_OPERATORS

TO_NCHW = (0, 3, 1, 2)  # NHWC -> NCHW
# Operators with NCHW outputs, and operators that keep the layout behind them.
SPATIAL = frozenset({"AveragePool", "Conv", "ConvTranspose", "DepthToSpace", "MaxPool", "Resize"})
FOLLOWING = frozenset({"Clip", "Relu", *QDQ_OPERATORS})

Shape = tuple[int, ...]


def begin_at(
    graph: Graph, names: Sequence[str], shapes: Mapping[str, Shape], is_nhwc: bool = False
) -> None:
    """Turns the named tensors, or the first outputs of the named nodes, into inputs.

    Names of inputs change nothing. `shapes` holds the new inputs' shapes in the file's order;
    `is_nhwc` says whether that order is NHWC. Raises ProjectError for an unknown name, a tensor
    without readers and an unknown shape.
    """
    input_names = {str(value.name) for value in graph.inputs}
    inner = {index: name for index, name in enumerate(names) if name not in input_names}
    if not inner:
        return
    needed_before = [value for value in graph.inputs if value.uses()]
    own = {name: _static_shape(value) for name, value in graph.with_shapes().values().items()}
    for index, name in inner.items():
        route = Route(f"model.inputs.{index}")
        value = _tensor(graph, name, route)
        own_shape = own.get(str(value.name))
        shape = shapes.get(name) or own_shape
        if shape is None:
            raise ProjectError(f"the shape of `{name}` is not known", route, "write its `shape`")
        turned = is_nhwc and _is_turned(value, shape, own_shape)
        if own_shape is not None and not turned and own_shape[1:] != shape[1:]:
            message = f"shape {list(shape)} does not fit `{name}`, which is {list(own_shape)}"
            raise ProjectError(message, Route(f"inputs.{name}.shape"), "write the shape it has")
        feed_at(graph, value, name, shape, TO_NCHW if turned else None)
    graph.drop_unused()
    for value in needed_before:
        if not value.uses():
            graph.drop_input(value)


def _tensor(graph: Graph, name: str, route: Route) -> Value:
    value = graph.values().get(name)
    nodes = graph.find(name) if value is None else ()
    tensor = value if value is not None else next((v for n in nodes for v in n.outputs[:1]), None)
    if tensor is None or producer(tensor) is None:
        tensor_names = {str(v.name) for n in graph.nodes() for v in n.outputs}
        hint = did_you_mean(name, tensor_names | {str(v.name) for v in graph.inputs})
        raise ProjectError(f"`{name}` is neither an input nor a tensor it computes", route, hint)
    if not tensor.uses():
        raise ProjectError(f"nothing reads `{name}`", route, "begin before the last layer")
    return tensor


def _static_shape(value: Value) -> Shape | None:
    dims = None if value.shape is None else tuple(value.shape)
    if dims is None or not all(isinstance(dim, int) for dim in dims):
        return None
    return tuple(int(dim) for dim in dims if isinstance(dim, int))


def _is_turned(value: Value, shape: Shape, own_shape: Shape | None) -> bool:
    """Whether the value is NCHW and the declared shape NHWC."""
    if len(shape) != 4 or own_shape is None:
        return False
    if own_shape[1:] == shape[1:]:
        return len(set(shape[1:])) == 1 and _is_picture(producer(value))
    return own_shape[1:] == tuple(shape[axis] for axis in TO_NCHW)[1:]


def _is_picture(node: Node | None) -> bool:
    while node is not None and node.op_type in FOLLOWING and node.inputs[0] is not None:
        node = producer(node.inputs[0])
    return node is not None and node.op_type in SPATIAL
