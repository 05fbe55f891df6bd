"""Writes scale and bias of LayerNormalization and RMSNormalization in the shape of a row.

The row is the axes from `axis` on. ONNX broadcasts both parameters to it: they may hold one number,
or have axes of size 1. onnxruntime's fusion of a residual sum with a norm takes rows only.
"""

from __future__ import annotations

import numpy as np

from npumake.graph import Graph, Node, array, attribute, open_dimensions, shape

NORMS = ("LayerNormalization", "RMSNormalization")


def plain_norms(graph: Graph) -> int:
    return sum(_rewritten(graph, node) for node in graph.nodes(*NORMS))


def _rewritten(graph: Graph, node: Node) -> int:
    x = node.inputs[0]
    if x is None or open_dimensions(x):
        return 0
    row = shape(x)[attribute(node, "axis", -1) :]
    spread: dict[int, np.ndarray] = {}
    for index in range(1, len(node.inputs)):
        values = array(node.inputs[index])
        if values is not None and values.shape != row:
            whole = _spread(values, row)
            spread |= {} if whole is None else {index: whole}
    for index, values in spread.items():
        value = node.inputs[index]
        assert value is not None
        graph.set_inputs(node, {index: graph.constant(f"{value.name}_row", values)})
    return len(spread)


def _spread(values: np.ndarray, row: tuple[int, ...]) -> np.ndarray | None:
    """The values broadcast to the row; None if they differ along another axis."""
    leading = max(values.ndim - len(row), 0)
    if any(size != 1 for size in values.shape[:leading]):
        return None
    values = values.reshape(values.shape[leading:])
    sizes: tuple[int, ...] = values.shape
    behind = row[len(row) - values.ndim :]
    if any(size not in (1, whole) for size, whole in zip(sizes, behind, strict=True)):
        return None
    return np.array(np.broadcast_to(values, row))
