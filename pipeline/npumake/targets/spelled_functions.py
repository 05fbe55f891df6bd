"""Functions that a model may spell out in several operators.

A vendor's tool without the function runs its parts. A node that npumake fused knows the parts that
its model has (npumake.graph.fused_parts); for a function of the model's own file these are the
operators of SPELLINGS.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from npumake.graph import Graph, Node, Value, array, attribute, parse_text

# By function, and by `approximate` of a Gelu. The numbers do not matter to any limit.
SPELLINGS = {
    "Gelu": "a = Mul(x, c)  e = Erf(a)  p = Add(e, c)  h = Mul(x, c)  y = Mul(h, p)",
    "Gelu tanh": "q = Mul(x, x)  k = Mul(q, x)  b = Mul(k, c)  d = Add(x, b)  f = Mul(d, c)"
    "  t = Tanh(f)  p = Add(t, c)  h = Mul(x, c)  y = Mul(h, p)",
    "HardSigmoid": "a = Mul(x, c)  b = Add(a, c)  y = Clip(b, c, c)",
    "HardSwish": "a = Mul(x, c)  b = Add(a, c)  g = Clip(b, c, c)  y = Mul(x, g)",
    "LayerNormalization": "m = ReduceMean(x, axes)  d = Sub(x, m)  s = Mul(d, d)"
    "  v = ReduceMean(s, axes)  w = Add(v, c)  r = Sqrt(w)  n = Div(d, r)",
    "Mish": "a = Softplus(x)  t = Tanh(a)  y = Mul(x, t)",
    "Swish": "g = Sigmoid(x)  y = Mul(x, g)",
}
# Follow a LayerNormalization with these inputs.
SCALED, SHIFTED = "h = Mul(n, scale)", "y = Add(h, bias)"
SPELLED_OUT = {
    "Gelu": ("Add", "Erf", "Mul"),
    "HardSigmoid": ("Add", "Clip", "Mul"),
    "HardSwish": ("Add", "Clip", "Mul"),
    "LayerNormalization": ("Add", "Div", "Mul", "ReduceMean", "Sqrt", "Sub"),
    "Mish": ("Mul", "Softplus", "Tanh"),
    "Swish": ("Mul", "Sigmoid"),
}


class FunctionInput(NamedTuple):
    """An input of a function, as far as limits depend on it."""

    dims: tuple[int | None, ...]
    is_constant: bool
    has_zero: bool


def with_spelled_out(*operators: str) -> tuple[str, ...]:
    """The operators, and each function that a model may also spell out in them."""
    known_operators = set(operators)
    composed = (name for name, parts in SPELLED_OUT.items() if known_operators.issuperset(parts))
    return tuple(dict.fromkeys((*operators, *composed)))


def spelled_out(node: Node) -> tuple[Node, ...]:
    """The parts of a function in the model's own file; empty for another operator, or where its
    rank is not known."""
    is_tanh = node.op_type == "Gelu" and attribute(node, "approximate", "none") == "tanh"
    name = "Gelu tanh" if is_tanh else node.op_type
    operands = tuple(_operand(value) for value in node.inputs)
    if name not in SPELLINGS or node.domain or not operands or operands[0] is None:
        return ()
    return _parts(name, operands, int(attribute(node, "axis", -1)))


def _operand(value: Value | None) -> FunctionInput | None:
    if value is None or value.shape is None:
        return None
    numbers = array(value)
    dims = tuple(size if isinstance(size, int) else None for size in value.shape)
    return FunctionInput(
        dims, numbers is not None, numbers is not None and bool((numbers == 0).any())
    )


@lru_cache(maxsize=1024)
def _parts(name: str, operands: tuple[FunctionInput | None, ...], axis: int) -> tuple[Node, ...]:
    first, *others = operands
    assert first is not None
    named = zip(("scale", "bias"), others, strict=False)
    parameters = {name: operand for name, operand in named if operand is not None}
    tensors = {"x": first, **parameters}
    inputs = ", ".join(f"float[{_sizes(name, o)}] {name}" for name, o in tensors.items())
    body = " ".join([SPELLINGS[name], *_behind(parameters)])
    output = body.rpartition("=")[0].split()[-1]
    rank = len(first.dims)
    axes = ", ".join(str(axis) for axis in range(axis % max(rank, 1), rank))
    graph = parse_text(
        f"""<ir_version: 9, opset_import: ["" : 20]> f ({inputs}) => (float[] {output})
        <float c = {{1}}, int64[{rank - axis % max(rank, 1)}] axes = {{{axes}}}> {{ {body} }}"""
    )
    for name, operand in parameters.items():
        _fix(graph, name, operand)
    return tuple(graph.with_shapes().nodes())


def _sizes(name: str, operand: FunctionInput) -> str:
    sizes = (f"{name}_{axis}" if s is None else str(s) for axis, s in enumerate(operand.dims))
    return ",".join(sizes)


def _behind(parameters: dict[str, FunctionInput]) -> Iterator[str]:
    if "scale" in parameters:
        yield SCALED
    if "bias" in parameters:
        yield SHIFTED if "scale" in parameters else SHIFTED.replace("(h", "(n")


def _fix(graph: Graph, name: str, operand: FunctionInput) -> None:
    """Turns the input into a constant if it is one in the model."""
    if not operand.is_constant or None in operand.dims:
        return
    numbers = np.ones([size or 0 for size in operand.dims], np.float32)
    numbers.reshape(-1)[:1] = 0 if operand.has_zero else 1
    value = graph.values()[name]
    graph.replace_uses(value, graph.constant(name, numbers))
    graph.drop_input(value)
