"""Bounds loops: one that reaches MAX_LOOP_ITERATIONS iterations is an error.

    constant trip count of at most MAX_LOOP_ITERATIONS        unchanged
    a larger one, or none with a constant true condition        refused
    else     the body reads  [true][turn / MAX_LOOP_ITERATIONS],  which fails in that iteration

The runtime itself then stops, and no other output changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import google.protobuf.message
import numpy as np
import onnx

from npumake.errors import GraphError
from npumake.graph.proto import bodies
from npumake.graph.wire import bytes_without_weights

MAX_LOOP_ITERATIONS = 1 << 20
# Prefix of the guard node's name, before the loop's: the runtime's error quotes it.
GUARD = "npumake turns of "
_LOOP = b"Loop"

Constants = Mapping[str, np.ndarray]


def ending(model: bytes) -> bytes:
    """The model with every loop bounded; unchanged bytes if none needs it.

    Raises GraphError for a loop that provably does not end. Bytes other than a model are returned
    unchanged, for the caller to refuse.
    """
    if _LOOP not in bytes_without_weights(model):
        return model
    try:
        proto = onnx.load_from_string(model)
    except (google.protobuf.message.DecodeError, ValueError):
        return model
    guarded = [_bound(node, constants) for node, constants in _loops(proto.graph, {})]
    return proto.SerializeToString(deterministic=True) if any(guarded) else model


def endless(message: str) -> str | None:
    """The name of the loop whose bound a runtime's error message reports, else None."""
    _, separator, rest = message.partition(GUARD)
    return rest.partition("'")[0] if separator else None


def _loops(
    graph: onnx.GraphProto, outside: Constants
) -> Iterator[tuple[onnx.NodeProto, Constants]]:
    """Every Loop of a graph and its bodies, with the scalar constants in scope."""
    constants = {**outside, **_constants(graph)}
    for node in graph.node:
        if node.op_type == "Loop" and not node.domain:
            yield node, constants
        for body in bodies(node):
            yield from _loops(body, constants)


def _constants(graph: onnx.GraphProto) -> dict[str, np.ndarray]:
    """Constants of one element, by name."""
    tensors = {tensor.name: tensor for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant" and node.attribute and node.attribute[0].HasField("t"):
            tensors[node.output[0]] = node.attribute[0].t
    inputs = {value.name for value in graph.input}
    return {
        name: onnx.numpy_helper.to_array(tensor)
        for name, tensor in tensors.items()
        if name not in inputs and int(np.prod(tensor.dims)) == 1 and not tensor.external_data
    }


def _bound(node: onnx.NodeProto, constants: Constants) -> bool:
    """Bounds the loop; False if it was bounded already. Raises GraphError."""
    turns = _number(node.input[:1], constants)
    if turns is not None and turns <= MAX_LOOP_ITERATIONS:
        return False
    (body,) = bodies(node)
    if _goes_on(node, body, constants) and (turns is not None or not any(node.input[:1])):
        duration = "never ends" if turns is None else f"runs {turns:,} times"
        raise too_long(node.name or node.output[0], duration)
    _guard(body, node.name or node.output[0])
    return True


def too_long(name: str, duration: str) -> GraphError:
    hint = "give the Loop a trip count, or a condition that becomes false"
    return GraphError(
        f"the loop `{name}` {duration}; at most {MAX_LOOP_ITERATIONS:,} turns are run", None, hint
    )


def _number(names: Sequence[str], constants: Constants) -> int | None:
    values = constants.get(names[0]) if names else None
    return None if values is None else int(values.reshape(-1)[0])


def _goes_on(node: onnx.NodeProto, body: onnx.GraphProto, constants: Constants) -> bool:
    """Whether the loop's condition is true or absent at first, and never changes."""
    begun = node.input[1:2]
    if any(begun) and not _number(begun, constants):
        return False
    passed = {body.input[1].name} if len(body.input) > 1 else set()
    for inner in body.node:
        if inner.op_type == "Identity" and inner.input[0] in passed:
            passed.add(inner.output[0])
    last = body.output[0].name
    return last in passed or bool(_number([last], _constants(body)))


def _guard(body: onnx.GraphProto, name: str) -> None:
    names = [f"{GUARD}{name} {role}" for role in ("most", "there", "part", "within", "on")]
    max_iterations, condition_in, part, within, on = names
    constants = {
        max_iterations: np.array(MAX_LOOP_ITERATIONS, np.int64),
        condition_in: np.array([True]),
    }
    # Constant nodes, since initializers of an early IR version would have to be inputs too.
    body.node.extend(
        onnx.helper.make_node("Constant", [], [n], value=onnx.numpy_helper.from_array(x))
        for n, x in constants.items()
    )
    body.node.extend(
        [
            onnx.helper.make_node("Div", [body.input[0].name, max_iterations], [part]),
            onnx.helper.make_node("Gather", [condition_in, part], [within], name=f"{GUARD}{name}"),
            onnx.helper.make_node("And", [body.output[0].name, within], [on]),
        ]
    )
    body.output[0].name = on
