"""Elementwise functions and selections in simpler operators.

Sinh, Cosh       (exp(x) -+ exp(-x)) / 2
Tan              sin(x) / cos(x)
Asinh            sign(x) log(|x| + sqrt(x * x + 1))
Acosh            log(x + sqrt(x * x - 1))
Atanh            log((1 + x) / (1 - x)) / 2
Sign             (x > 0) - (x < 0)
Elu              max(x, 0) + alpha (exp(min(x, 0)) - 1)
ReduceLogSumExp  log(sum(exp(x - max))) + max
Round            floor(x), plus one above the middle, to even at the middle
Hardmax, OneHot  where the indices 0, 1, 2 ... equal the index
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from npumake.graph import Value, array, attribute, dtype, is_float, shape, type_number
from npumake.passes.writing import Writing

Recipe = Callable[[Writing], bool]


def _x(write: Writing) -> Value:
    x = write.node.inputs[0]
    assert x is not None
    return x


def _half_of_exps(kind: str) -> Recipe:
    def recipe(write: Writing) -> bool:
        x = _x(write)
        up = write.insert("Exp", [x], "up")
        down = write.insert("Exp", [write.insert("Neg", [x], "negative")], "down")
        combined = write.insert(kind, [up, down], "both")
        return write.become("Mul", [combined, write.number(0.5)])

    return recipe


def _tan(write: Writing) -> bool:
    x = _x(write)
    return write.become("Div", [write.insert("Sin", [x], "sin"), write.insert("Cos", [x], "cos")])


def _sign(write: Writing, x: Value) -> tuple[Value, Value]:
    """x > 0 and x < 0, as floats."""
    zero = write.number(0.0)
    above, below = (
        write.insert("Cast", [write.insert(kind, [x, zero], f"is_{kind}")], kind, to=1)
        for kind in ("Greater", "Less")
    )
    return above, below


def _signum(write: Writing) -> bool:
    x = _x(write)
    return is_float(x) and write.become("Sub", _sign(write, x))


def _root_of_square(write: Writing, x: Value, addend: float) -> Value:
    square = write.insert("Mul", [x, x], "square")
    return write.insert(
        "Sqrt", [write.insert("Add", [square, write.number(addend)], "sum")], "root"
    )


def _asinh(write: Writing) -> bool:
    x = _x(write)
    size = write.insert("Abs", [x], "size")
    whole = write.insert("Add", [size, _root_of_square(write, x, 1.0)], "whole")
    sign = write.insert("Sub", _sign(write, x), "sign")
    return write.become("Mul", [sign, write.insert("Log", [whole], "log")])


def _acosh(write: Writing) -> bool:
    x = _x(write)
    return write.become("Log", [write.insert("Add", [x, _root_of_square(write, x, -1.0)], "whole")])


def _atanh(write: Writing) -> bool:
    x, unit = _x(write), write.number(1.0)
    ratio = write.insert(
        "Div",
        [write.insert("Add", [unit, x], "above"), write.insert("Sub", [unit, x], "below")],
        "ratio",
    )
    return write.become("Mul", [write.insert("Log", [ratio], "log"), write.number(0.5)])


def _elu(write: Writing) -> bool:
    """LiteRT's reference kernels lack Elu, and its others lack alpha."""
    x, zero = _x(write), write.number(0.0)
    grown = write.insert("Exp", [write.insert("Min", [x, zero], "below")], "grown")
    decreased = write.insert("Sub", [grown, write.number(1.0)], "less")
    scaled = write.insert(
        "Mul", [decreased, write.number(attribute(write.node, "alpha", 1.0))], "scaled"
    )
    return write.become("Add", [write.insert("Max", [x, zero], "above"), scaled])


def _cast_like(write: Writing) -> bool:
    like = write.node.inputs[1]
    assert like is not None
    return write.become("Cast", [_x(write)], to=type_number(dtype(like)))


def _round(write: Writing) -> bool:
    """Half to even: up above the middle, and at the middle if the floor is odd."""
    x, half = _x(write), write.number(0.5)
    floor = write.insert("Floor", [x], "floor")
    above = write.insert("Sub", [x, floor], "above")
    pairs = write.insert("Floor", [write.insert("Mul", [floor, half], "half")], "pairs")
    even = write.insert("Mul", [pairs, write.number(2.0)], "even")
    is_odd = write.insert("Less", [even, floor], "is_odd")
    is_tie = write.insert(
        "And", [write.insert("Equal", [above, half], "is_middle"), is_odd], "is_tie"
    )
    is_up = write.insert(
        "Or", [write.insert("Greater", [above, half], "is_above"), is_tie], "is_up"
    )
    return write.become("Add", [floor, write.insert("Cast", [is_up], "up", to=1)])


def _axes(write: Writing) -> list[int] | None:
    """The reduced axes, all by default; None if computed."""
    node, rank = write.node, len(shape(_x(write)))
    axes_input = node.inputs[1] if len(node.inputs) > 1 else None
    axes = array(axes_input)
    if axes_input is not None and axes is None:
        return None
    if axes is None or not axes.size:
        return [] if attribute(node, "noop_with_empty_axes", 0) else list(range(rank))
    return [int(axis) % rank for axis in axes]


def _log_sum_exp(write: Writing) -> bool:
    x, axes = _x(write), _axes(write)
    if axes is None:
        return False
    if not axes:
        return write.become("Identity", [x])
    maximum = write.reduced("ReduceMax", x, axes)
    parts = write.insert("Exp", [write.insert("Sub", [x, maximum], "apart")], "parts")
    log = write.insert("Log", [write.reduced("ReduceSum", parts, axes)], "log")
    total = write.insert("Add", [log, maximum], "total")
    dims = write.constant(np.array(shape(write.node.outputs[0]), np.int64), "dims")
    return write.become("Reshape", [total, dims])


def _arg_min(write: Writing) -> bool:
    node = write.node
    attributes = {name: attribute(node, name) for name in ("axis", "keepdims", "select_last_index")}
    return write.become("ArgMax", [write.insert("Neg", [_x(write)], "negative")], **attributes)


def _arg_max(write: Writing) -> bool:
    """The last of equal maxima is the first in reversed order."""
    x, node = _x(write), write.node
    axis = attribute(node, "axis", 0) % len(shape(x))
    if not attribute(node, "select_last_index", 0):
        return False
    size = shape(x)[axis]
    behind = write.constant(np.arange(size)[::-1].astype(np.int64), "behind")
    turned = write.insert("Gather", [x, behind], "turned", axis=axis)
    keep = attribute(node, "keepdims", 1)
    place = write.insert("ArgMax", [turned], "place", axis=axis, keepdims=keep)
    last = write.constant(np.array(size - 1, np.int64), "last")
    return write.become("Sub", [last, place])


def _top_k(write: Writing) -> bool:
    """The smallest values are the largest of the negated ones."""
    node = write.node
    if attribute(node, "largest", 1) or not is_float(node.inputs[0]):
        return False
    values = node.outputs[0]
    negative = write.insert("Neg", [_x(write)], "negative")
    write.graph.set_inputs(node, {0: negative})
    write.graph.set_attributes(node, largest=1)
    readers = [use.node for use in values.uses()]
    smallest = write.graph.insert("Neg", [values], f"{node.name}_values", after=node)
    write.graph.replace_readers(values, smallest, readers)
    if values.is_graph_output():
        write.graph.replace_output(values, smallest)
    return True


def _places(size: int, rank: int, axis: int) -> np.ndarray:
    return np.arange(size, dtype=np.int64).reshape([-1 if a == axis else 1 for a in range(rank)])


def _hardmax(write: Writing) -> bool:
    x = _x(write)
    rank = len(shape(x))
    axis = attribute(write.node, "axis", -1) % rank
    index = write.insert("ArgMax", [x], "place", axis=axis, keepdims=1)
    places = write.constant(_places(shape(x)[axis], rank, axis), "places")
    return write.become("Cast", [write.insert("Equal", [index, places], "is_most")], to=1)


def _one_hot(write: Writing) -> bool:
    indices, node = _x(write), write.node
    depth, values = array(node.inputs[1]), array(node.inputs[2])
    if depth is None or values is None or values.dtype != np.float32:
        return False
    size, rank = int(depth.reshape(-1)[0]), len(shape(indices)) + 1
    axis = attribute(node, "axis", -1) % rank
    dims = [*shape(indices)[:axis], 1, *shape(indices)[axis:]]
    whole = write.shaped(write.insert("Cast", [indices], "whole", to=7), dims, "apart")
    places = [_places(size, rank, axis), _places(size, rank, axis) - size]
    first, last = (write.constant(position, "places") for position in places)
    hits = [write.insert("Equal", [whole, position], "hit") for position in (first, last)]
    off, on = (write.constant(np.full((1,) * rank, v, np.float32), "value") for v in values)
    return write.become("Where", [write.insert("Or", hits, "is_hot"), on, off])


def _no_reduction(write: Writing) -> bool:
    return _axes(write) == [] and write.become("Identity", [_x(write)])


RECIPES: Mapping[str, Recipe] = {
    "Acosh": _acosh,
    "ArgMax": _arg_max,
    "ArgMin": _arg_min,
    "Asinh": _asinh,
    "Atanh": _atanh,
    "CastLike": _cast_like,
    "Elu": _elu,
    "Cosh": _half_of_exps("Add"),
    "Hardmax": _hardmax,
    "OneHot": _one_hot,
    "ReduceLogSumExp": _log_sum_exp,
    "ReduceMax": _no_reduction,
    "ReduceMean": _no_reduction,
    "ReduceSum": _no_reduction,
    "Round": _round,
    "Sign": _signum,
    "Sinh": _half_of_exps("Sub"),
    "Tan": _tan,
    "TopK": _top_k,
}
