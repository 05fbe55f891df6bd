"""Recognizes elementwise nodes that together compute one ONNX function.

Networks write x * clip(x + 3, 0, 6) / 6 in a dozen ways. All are functions of one number, so they
are compared by value: f equals g if on POINTS, dense around zero and up to 1e12 on both sides,

    |f(x) - g(x)| <= 1e-6 |g(x)| + 1e-7      in float64

The parameters of a HardSigmoid follow from two values: beta = f(0), alpha = (f(h) - f(0)) / h. SiLU
is not included: below opset 24 it has no operator of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, reduce
from typing import Any, NamedTuple

import numpy as np

from npumake.engine import functions
from npumake.graph import Graph, Node, Value, array, is_float, is_given, producer
from npumake.passes.parts import fuse

_LOG_POINTS = np.logspace(-8, 12, 241)
STEP = 2.0**-7  # h: small enough for the slope, exact in binary
POINTS = np.concatenate([[0.0, STEP], np.linspace(-12, 12, 2401), _LOG_POINTS, -_LOG_POINTS])
# Few points that distinguish most functions, tried first; 0 and h come first.
ALL = np.arange(len(POINTS))
AHEAD = np.array([0, 1, 602, 902, 1102, 1302, 1502, 1802, 2500])
RTOL, ATOL = 1e-6, 1e-7
MAX_CACHED_VALUES = 4096  # cached values
MAX_NODES = 16  # of one function; the longest known spelling of Gelu has 9


Ahead = dict[
    Value, dict[Value, np.ndarray]
]  # by x, the values computed from it at the points AHEAD


class FunctionPattern(NamedTuple):
    op_type: str
    opset: int  # the first opset with the function
    function: Callable[[np.ndarray], np.ndarray]
    attributes: dict[str, Any]


PATTERNS = (
    FunctionPattern("HardSwish", 14, functions.hard_swish, {}),
    FunctionPattern("Gelu", 20, functions.gelu, {}),
    FunctionPattern("Gelu", 20, functions.gelu_tanh, {"approximate": "tanh"}),
    FunctionPattern("Mish", 18, functions.mish, {}),
)


class _Cone(NamedTuple):
    """Nodes whose result depends only on `x`; the last node of the graph comes first."""

    nodes: tuple[Node, ...]
    x: Value


def recognize_functions(graph: Graph) -> int:
    count = 0
    covered: set[Node] = set()
    ahead: Ahead = {}
    for top in reversed(graph.nodes(*ELEMENTWISE)):
        if top in covered:
            continue
        matches = [
            (cone, function) for cone in _cones(top) if (function := _function(graph, cone, ahead))
        ]
        if len(ahead) > MAX_CACHED_VALUES:
            ahead.clear()
        for cone, function in matches[-1:]:  # the largest match
            fuse(graph, cone.nodes, function.op_type, [cone.x], **function.attributes)
            covered.update(cone.nodes)
            count += 1
    return count


def _cones(top: Node) -> Iterator[_Cone]:
    """Growing sets of nodes that end in `top` and whose inner results are only read inside."""
    nodes = [top] if _is_elementwise(top) else []
    leaves: dict[Value, None] = {}  # their inputs, in reading order
    while nodes and len(nodes) <= MAX_NODES:
        leaves.pop(nodes[-1].outputs[0], None)
        leaves |= dict.fromkeys(value for value in _operands(nodes[-1]) if not is_given(value))
        leaf = next(iter(leaves), None)
        if leaf and len(nodes) > 1 and len(leaves) == 1 and _same_shape(leaf, top.outputs[0]):
            yield _Cone(tuple(nodes), leaf)
        makers = map(producer, leaves)
        inner = next((maker for maker in makers if maker and _is_inner(maker, nodes)), None)
        if inner is None:
            return
        nodes.append(inner)


def _is_inner(maker: Node, nodes: list[Node]) -> bool:
    output = maker.outputs[0]
    inside = all(use.node in nodes for use in output.uses()) and not output.is_graph_output()
    return inside and _is_elementwise(maker)


def _is_elementwise(node: Node) -> bool:
    """A known operator on floats whose constants are scalars."""
    if node.op_type not in ELEMENTWISE or node.domain or not is_float(node.outputs[0]):
        return False
    constants = [value.const_value for value in _operands(node) if is_given(value)]
    return all(constant is not None and constant.size == 1 for constant in constants)


def _same_shape(a: Value, b: Value) -> bool:
    return a.shape is not None and b.shape is not None and tuple(a.shape) == tuple(b.shape)


def _function(graph: Graph, cone: _Cone, ahead: Ahead) -> FunctionPattern | None:
    values = ahead.setdefault(cone.x, {cone.x: POINTS[AHEAD]})
    if _function_at(AHEAD, graph, cone, values) is None:
        return None
    return _function_at(ALL, graph, cone, {cone.x: POINTS})


def _function_at(
    points: np.ndarray, graph: Graph, cone: _Cone, known_values: dict[Value, np.ndarray]
) -> FunctionPattern | None:
    with np.errstate(all="ignore"):
        values = _computed(cone, known_values)
    if not np.isfinite(values).all():
        return None
    for index, function in enumerate(PATTERNS):
        if graph.opset >= function.opset and _agree(values, _expected(index)[points]):
            return function
    return _hard_sigmoid(values, POINTS[points])


def _agree(values: np.ndarray, expected: np.ndarray) -> bool:
    return bool((np.abs(values - expected) <= RTOL * np.abs(expected) + ATOL).all())


@cache
def _expected(index: int) -> np.ndarray:
    return PATTERNS[index].function(POINTS)


def _hard_sigmoid(values: np.ndarray, points: np.ndarray) -> FunctionPattern | None:
    """The HardSigmoid through f(0) and f(h), the first two points, if it equals f."""
    beta, at_step = map(float, values[:2])
    alpha = (at_step - beta) / STEP
    if not 0.0 < beta < 1.0 or alpha <= 0.0:  # TensorFlow Lite has no falling one
        return None
    expected = functions.hard_sigmoid(points, alpha, beta)
    attributes = {"alpha": alpha, "beta": beta}
    function = FunctionPattern(
        "HardSigmoid", 6, lambda x: functions.hard_sigmoid(x, alpha, beta), attributes
    )
    return function if _agree(values, expected) else None


def _computed(cone: _Cone, values: dict[Value, np.ndarray]) -> np.ndarray:
    """f in float64, given the `values` of `x`; inner results are added to `values`."""

    def value_of(value: Value) -> np.ndarray:
        if value not in values:
            constant, maker = array(value), producer(value)
            if constant is not None:
                values[value] = np.asarray(constant, np.float64).reshape(())
            elif maker is not None:
                values[value] = ELEMENTWISE[maker.op_type](maker, *map(value_of, _operands(maker)))
        return values[value]

    return value_of(cone.nodes[0].outputs[0])


def _operands(node: Node) -> list[Value]:
    return [value for value in node.inputs if value is not None]


def _clip(node: Node, x: np.ndarray, *_: np.ndarray) -> np.ndarray:
    low, high = ([*map(array, node.inputs[1:]), None, None])[:2]
    x = x if low is None else np.maximum(x, low.reshape(()))
    return x if high is None else np.minimum(x, high.reshape(()))


ELEMENTWISE: dict[str, Callable[..., np.ndarray]] = {
    **functions.FUNCTIONS,
    "Add": lambda _, a, b: a + b,
    "Clip": _clip,
    "Div": lambda _, a, b: a / b,
    "Max": lambda _, *arrays: reduce(np.maximum, arrays),
    "Min": lambda _, *arrays: reduce(np.minimum, arrays),
    "Mul": lambda _, a, b: a * b,
    "Pow": lambda _, a, b: a**b,
    "Relu": lambda _, a: np.maximum(a, 0.0),
    "Sqrt": lambda _, a: np.sqrt(a),
    "Sub": lambda _, a, b: a - b,
}
