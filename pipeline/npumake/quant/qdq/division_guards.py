"""A division of codes never divides by zero.

    y = a / b    becomes    y = a / (b + tiny)      tiny = s_b * 2**-40

which in float32 is b wherever b is a code but zero, and so 0 / 0 is 0 and a / 0 lies beyond every
grid, with the sign of a: as the integer kernel has it (npumake.kernels.divide), and unlike NaN the
same code on every machine. A norm that codes are divided by in float, and that nothing is added to,
is zero where all of its codes are: it gets the least number that float32 divides by.
"""

from __future__ import annotations

import numpy as np

from npumake.graph import Graph, Node, Value, array, declare, dtype, guard, producer, shape
from npumake.quant.precision.divisor_ranges import unguarded_norm
from npumake.quant.qdq.pairs import DQ

BITS = 40
LEAST = 2.0**-96  # beside what is not zero, a norm of codes, it is nothing
SMALLEST = 2.0**-80  # a scale below it has no such number among float32's normal ones


def guard_divisions(graph: Graph) -> None:
    for node in graph.nodes("Div", "Reciprocal", "Pow"):
        index = _place(node)
        value = None if index is None else node.inputs[index]
        least = None if value is None else _tiny(value)
        if value is None or index is None or least is None or dtype(value) != "float32":
            continue
        tiny = graph.constant(f"{node.name}_tiny", np.array(least, np.float32))
        guarded = graph.insert("Add", [value, tiny], f"{node.name}_divisor", before=node)
        declare(guarded, shape(value), tiny)
        maker = producer(guarded)
        assert maker is not None
        guard(maker)
        graph.set_inputs(node, {index: guarded})


def _place(node: Node) -> int | None:
    """Which input it divides by."""
    if node.op_type == "Div":
        return 1
    exponent = array(node.inputs[1]) if node.op_type == "Pow" else np.array(-1.0)
    return 0 if exponent is not None and (exponent < 0).all() else None


def _tiny(value: Value) -> float | None:
    """What is nothing beside the divisor; None where it cannot be zero by rounding alone."""
    scale = _scale(value)
    if scale is not None:
        return scale * 2.0**-BITS if scale >= SMALLEST else None
    if array(value) is not None:
        return None
    source = unguarded_norm(value)
    return None if source is None or _scale(source) is None else LEAST


def _scale(value: Value) -> float | None:
    """Of codes that are computed or fed."""
    maker = producer(value)
    if maker is None or maker.op_type != DQ or array(maker.inputs[0]) is not None:
        return None
    scale = array(maker.inputs[1])
    return None if scale is None or scale.size != 1 else float(scale.reshape(-1)[0])
