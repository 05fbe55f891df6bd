"""Division guards: quantized values are never divided by zero.

    y = a / b    becomes    y = a / (b + tiny)      tiny = s_b * 2**-40

In float32 the sum is b for every code but zero. So 0 / 0 is 0 and a / 0 is beyond every grid with
the sign of a, as in the integer kernel (npumake.kernels.divide). NaN would become different codes
on different machines. An unguarded norm of quantized values is zero if all codes are: its guard is
the least number that float32 divides by.
"""

from __future__ import annotations

import numpy as np

from npumake.graph import Graph, Node, Value, array, declare, dtype, guard, producer, shape
from npumake.graph.qdq import dequantizer_of, scalar_grid_of
from npumake.quant.precision.divisor_ranges import unguarded_norm

GUARD_BITS = 40
MIN_DIVISOR = 2.0**-96  # negligible beside any non-zero norm of codes
MIN_GUARDED_SCALE = 2.0**-80  # smaller scales have no normal float32 guard


def guard_divisions(graph: Graph) -> None:
    """Adds the guards to `graph` in place."""
    for node in graph.nodes("Div", "Reciprocal", "Pow"):
        index = _place(node)
        value = None if index is None else node.inputs[index]
        smallest = None if value is None else _tiny(value)
        if value is None or index is None or smallest is None or dtype(value) != "float32":
            continue
        tiny = graph.constant(f"{node.name}_tiny", np.array(smallest, np.float32))
        guarded = graph.insert("Add", [value, tiny], f"{node.name}_divisor", before=node)
        declare(guarded, shape(value), tiny)
        maker = producer(guarded)
        assert maker is not None
        guard(maker)
        graph.set_inputs(node, {index: guarded})


def _place(node: Node) -> int | None:
    """The index of the divisor."""
    if node.op_type == "Div":
        return 1
    exponent = array(node.inputs[1]) if node.op_type == "Pow" else np.array(-1.0)
    return 0 if exponent is not None and (exponent < 0).all() else None


def _tiny(value: Value) -> float | None:
    """The guard of a divisor; None if rounding cannot make it zero."""
    scale = _scale(value)
    if scale is not None:
        return scale * 2.0**-GUARD_BITS if scale >= MIN_GUARDED_SCALE else None
    if array(value) is not None:
        return None
    source = unguarded_norm(value)
    return None if source is None or _scale(source) is None else MIN_DIVISOR


def _scale(value: Value) -> float | None:
    """The scale of a quantized activation."""
    dequantizer = dequantizer_of(value)
    if dequantizer is None or array(dequantizer.inputs[0]) is not None:
        return None
    grid = scalar_grid_of(dequantizer)
    return None if grid is None else float(grid.scale)
