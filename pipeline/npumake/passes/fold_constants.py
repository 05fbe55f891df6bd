"""Computes nodes that read only constants.

onnxruntime computes them, as in every run. Random and stateful operators are excluded, and so is a
result that exceeds its constants by more than MAX_GROWTH.
"""

from __future__ import annotations

from math import prod

import numpy as np

from npumake.engine.ort import OrtSession
from npumake.graph import Graph, Node, Value, array, attribute, serialized_part, shape
from npumake.graph.qdq import QDQ_OPERATORS

MAX_GROWTH = 1 << 20  # bytes that a fold may add to the file
UNFOLDABLE = frozenset(
    {
        "Bernoulli",
        "Dropout",
        "If",
        "Loop",
        "Multinomial",
        *QDQ_OPERATORS,
        "RandomNormal",
        "RandomNormalLike",
        "RandomUniform",
        "RandomUniformLike",
        "Scan",
    }
)


def fold_constants(graph: Graph) -> int:
    """Also folds the Shape of a tensor with a static shape."""
    inner = (node for node in graph.nodes() if not is_output(node))
    return sum(fold(graph, node) for node in inner if is_constant(node))


def is_output(node: Node) -> bool:
    """Whether a model output comes from the node."""
    return any(value.is_graph_output() for value in node.outputs)


def is_constant(node: Node) -> bool:
    """Whether the result is independent of the inputs."""
    if node.op_type in UNFOLDABLE or node.domain:
        return False
    if node.op_type == "Shape":
        x = node.inputs[0]
        return x is not None and x.shape is not None and x.shape.is_static()
    return all(array(value) is not None for value in node.inputs if value is not None)


def fold(graph: Graph, node: Node) -> bool:
    """Replaces the node by constants, a model output by an Identity of one. False if these would be
    too large, or are not arrays."""
    before = sum(constant.nbytes for v in node.inputs if (constant := array(v)) is not None)
    if not all(_may_be_small(value, before) for value in node.outputs):
        return False
    results = _shape_of(node) if node.op_type == "Shape" else _computed(graph, node)
    if not all(isinstance(result, np.ndarray) and result.dtype != object for result in results):
        return False  # text, or a sequence of tensors
    if sum(result.nbytes for result in results) > before + MAX_GROWTH:
        return False
    for value, result in zip(node.outputs, results, strict=True):
        folded = graph.constant(f"{value.name}_folded", result)
        if value.is_graph_output():
            folded = graph.insert("Identity", [folded], f"{value.name}_given", before=node)
        graph.replace_uses(value, folded)
    graph.remove(node)
    return True


def _may_be_small(value: Value, before: int) -> bool:
    """Whether the result may be small enough, at one byte per element at least."""
    is_static = value.shape is not None and value.shape.is_static()
    return not is_static or prod(shape(value)) <= before + MAX_GROWTH


def _computed(graph: Graph, node: Node) -> list[np.ndarray]:
    return OrtSession(serialized_part(graph, [node], node.outputs)).run(None, {})


def _shape_of(node: Node) -> list[np.ndarray]:
    x = node.inputs[0]
    assert x is not None
    span = slice(attribute(node, "start", 0), attribute(node, "end"))
    return [np.array(shape(x)[span], np.int64)]
