"""A Gemm as W x + b, and a product of vectors as one of matrices: what units and kernels have.

    alpha A B + beta C  ->  A (alpha B) + (beta C)        B, C constant: folded
    transA              ->  Transpose in front
    C one per row, or computed  ->  Add behind
    B computed          ->  MatMul, Mul by alpha, Add
    x W, x a vector     ->  Reshape (1, n), MatMul, Reshape

A folded factor is rounded once more: the last bit of a float may differ.
"""

from __future__ import annotations

import math

import numpy as np

from pipeline.graph import Graph, Node, Value, array, attribute, is_float, open_dimensions, shape
from pipeline.passes.writing import Writing


def plain_gemm(graph: Graph) -> int:
    gemms = [node for node in graph.nodes("Gemm") if is_float(node.outputs[0]) and _is_odd(node)]
    for node in gemms:
        _rewrite_gemm(graph, node)
    vectors = [node for node in graph.nodes("MatMul") if _has_vector(node)]
    for node in vectors:
        _rewrite_vectors(graph, node)
    return len(gemms) + len(vectors)


def _is_odd(gemm: Node) -> bool:
    if any(value is not None and open_dimensions(value) for value in (*gemm.inputs, *gemm.outputs)):
        return False
    factors = attribute(gemm, "alpha", 1.0), attribute(gemm, "beta", 1.0)
    plain = factors == (1.0, 1.0) or (factors[0] == 1.0 and _bias(gemm) is None)
    return not (plain and not attribute(gemm, "transA", 0) and _is_row(gemm) and _has_weight(gemm))


def _has_weight(gemm: Node) -> bool:
    return array(gemm.inputs[1]) is not None


def _bias(gemm: Node) -> Value | None:
    return gemm.inputs[2] if len(gemm.inputs) > 2 else None


def _is_row(gemm: Node) -> bool:
    """Whether the bias is none, or constant and the same for every row."""
    bias = _bias(gemm)
    return bias is None or (array(bias) is not None and math.prod(shape(bias)[:-1]) == 1)


def _rewrite_gemm(graph: Graph, gemm: Node) -> None:
    write, (left, right, *_) = Writing(graph, gemm), gemm.inputs
    assert left is not None
    assert right is not None
    alpha, beta = attribute(gemm, "alpha", 1.0), attribute(gemm, "beta", 1.0)
    if attribute(gemm, "transA", 0):
        left = write.made("Transpose", [left], "rows")
    bias = _scaled(write, _bias(gemm), beta, "bias")
    turned = attribute(gemm, "transB", 0)
    if _has_weight(gemm):
        read = [left, _scaled(write, right, alpha, "weight")]
        if bias is None or _is_row(gemm):
            graph.become(gemm, "Gemm", [*read, bias][: 3 if bias else 2], transB=turned or None)
            return
        product: Value | None = write.made("Gemm", read, "product")
        if turned and product is not None:
            graph.set_attributes(product.producer(), transB=1)
    else:
        columns = write.made("Transpose", [right], "columns") if turned else right
        product = _scaled(write, write.made("MatMul", [left, columns], "product"), alpha, "scaled")
    if bias is None:
        graph.become(gemm, "Identity", [product])
    else:
        graph.become(gemm, "Add", [product, bias])


def _scaled(write: Writing, value: Value | None, factor: float, name: str) -> Value | None:
    """A constant times the factor, or a product in front of the node."""
    if value is None or factor == 1.0:
        return value
    values = array(value)
    if values is not None:
        return write.constant(values * np.float32(factor), name)
    held = write.constant(np.array(factor, np.float32), f"{name}_factor")
    return write.made("Mul", [value, held], name)


def _has_vector(node: Node) -> bool:
    dims = [value.shape for value in node.inputs if value is not None]
    known = not any(open_dimensions(value) for value in node.outputs)
    return known and any(each is not None and len(each) == 1 for each in dims)


def _rewrite_vectors(graph: Graph, node: Node) -> None:
    """The vector on the left is a row, that on the right a column."""
    write, made = Writing(graph, node), node.outputs[0]
    left, right = node.inputs
    assert left is not None
    assert right is not None
    dims, readers = shape(made), [use.node for use in made.uses()]
    if len(shape(left)) == 1:
        left = write.shaped(left, (1, *shape(left)), "row")
    if len(shape(right)) == 1:
        values = array(right)
        tall = (*shape(right), 1)
        held = None if values is None else write.constant(values.reshape(tall), "column")
        right = held or write.shaped(right, tall, "column")
    graph.set_inputs(node, {0: left, 1: right})
    target = graph.constant(f"{node.name}_dims", np.array(dims, np.int64))
    whole = graph.insert("Reshape", [made, target], f"{node.name}_vector", after=node)
    graph.replace_readers(made, whole, readers)
    if made.is_graph_output():
        graph.replace_output(made, whole)
    graph.forget_shape(made)
