"""Loops that must end: one that runs MOST_TURNS times, and still would go on, is an error.

    M a constant of at most MOST_TURNS       as it is
    M a larger one, or none, and a condition that nothing changes       refused as it stands
    else     the body reads  [true][turn / MOST_TURNS],  which is there in every turn but that one

so that the runtime itself stops, and no other output is touched.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import google.protobuf.message
import numpy as np
import onnx

from npumake.errors import GraphError
from npumake.graph.proto import bodies
from npumake.graph.wire import bytes_without_weights

MAX_TURNS = 1 << 20
GUARD = "npumake turns of "  # and the loop's name: what a runtime says it failed at
_LOOP = b"Loop"

Constants = Mapping[str, np.ndarray]


def ending(model: bytes) -> bytes:
    """The model with every loop bounded, most often as it was given. Raises GraphError for a loop
    that says itself that it does not end; what is no model is left to whoever reads it."""
    if _LOOP not in bytes_without_weights(model):
        return model
    try:
        proto = onnx.load_from_string(model)
    except (google.protobuf.message.DecodeError, ValueError):
        return model
    guarded = [_bound(node, constants) for node, constants in _loops(proto.graph, {})]
    return proto.SerializeToString(deterministic=True) if any(guarded) else model


def endless(message: str) -> str | None:
    """The loop that a runtime says it failed in, where it failed at its bound."""
    _, separator, rest = message.partition(GUARD)
    return rest.partition("'")[0] if separator else None


def _loops(
    graph: onnx.GraphProto, outside: Constants
) -> Iterator[tuple[onnx.NodeProto, Constants]]:
    """Every Loop of a graph and of the bodies in it, with the small constants it may look up."""
    constants = {**outside, **_constants(graph)}
    for node in graph.node:
        if node.op_type == "Loop" and not node.domain:
            yield node, constants
        for body in bodies(node):
            yield from _loops(body, constants)


def _constants(graph: onnx.GraphProto) -> dict[str, np.ndarray]:
    """Of one element each."""
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
    """Whether the loop had to be bounded. Raises GraphError."""
    turns = _number(node.input[:1], constants)
    if turns is not None and turns <= MAX_TURNS:
        return False
    (body,) = bodies(node)
    if _goes_on(node, body, constants) and (turns is not None or not any(node.input[:1])):
        duration = "never ends" if turns is None else f"runs {turns:,} times"
        raise too_long(node.name or node.output[0], duration)
    _guard(body, node.name or node.output[0])
    return True


def too_long(name: str, duration: str) -> GraphError:
    hint = "give the Loop a count of turns, or a condition that comes to be false"
    return GraphError(
        f"the loop `{name}` {duration}; at most {MAX_TURNS:,} turns are run", None, hint
    )


def _number(names: Sequence[str], constants: Constants) -> int | None:
    values = constants.get(names[0]) if names else None
    return None if values is None else int(values.reshape(-1)[0])


def _goes_on(node: onnx.NodeProto, body: onnx.GraphProto, constants: Constants) -> bool:
    """Whether its condition is true at first, or none, and what it was ever after."""
    begun = node.input[1:2]
    if any(begun) and not _number(begun, constants):
        return False
    passed = {body.input[1].name} if len(body.input) > 1 else set()
    for each in body.node:
        if each.op_type == "Identity" and each.input[0] in passed:
            passed.add(each.output[0])
    last = body.output[0].name
    return last in passed or bool(_number([last], _constants(body)))


def _guard(body: onnx.GraphProto, name: str) -> None:
    names = [f"{GUARD}{name} {role}" for role in ("most", "there", "part", "within", "on")]
    most, there, part, within, on = names
    constants = {most: np.array(MAX_TURNS, np.int64), there: np.array([True])}
    # Nodes, no initializers: those of a model of an early IR would have to be inputs too.
    body.node.extend(
        onnx.helper.make_node("Constant", [], [n], value=onnx.numpy_helper.from_array(x))
        for n, x in constants.items()
    )
    body.node.extend(
        [
            onnx.helper.make_node("Div", [body.input[0].name, most], [part]),
            onnx.helper.make_node("Gather", [there, part], [within], name=f"{GUARD}{name}"),
            onnx.helper.make_node("And", [body.output[0].name, within], [on]),
        ]
    )
    body.output[0].name = on
