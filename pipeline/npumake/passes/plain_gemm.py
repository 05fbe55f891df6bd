"""Normalizes a Gemm to W x + b, and a product with a vector to one of matrices, as chips need.

    alpha A B + beta C  ->  A (alpha B) + (beta C)        B, C constant: folded
    transA              ->  Transpose before
    C per row, or computed  ->  Add behind
    B computed          ->  MatMul, Mul by alpha, Add        if a target requests it
    x W, x a vector     ->  Reshape (1, n), MatMul, Reshape

A folded factor adds a rounding: the last bit of a float may differ.
"""

from __future__ import annotations

import math

import numpy as np

from npumake.graph import Graph, Node, Value, array, attribute, is_float, open_dimensions, shape
from npumake.passes.writing import Writing


def plain_gemm(graph: Graph) -> int:
    """For constant weights; `as_product` handles a Gemm of two tensors."""
    gemms = [node for node in graph.nodes("Gemm") if _is_odd(node)]
    for node in gemms:
        _rewrite_gemm(Writing(graph, node))
    vectors = [node for node in graph.nodes("MatMul") if _has_vector(node)]
    for node in vectors:
        _rewrite_vectors(graph, node)
    return len(gemms) + len(vectors)


def as_product(write: Writing) -> bool:
    """A MatMul, if the Gemm has no constant weights."""
    gemm = write.node
    if array(gemm.inputs[1]) is not None or not is_float(gemm.outputs[0]):
        return False
    left, right = _sides(write)
    product = write.insert("MatMul", [left, right], "product")
    return _moved(write, _scaled(write, product, attribute(gemm, "alpha", 1.0), "scaled"))


def _is_odd(gemm: Node) -> bool:
    """Whether the weights are constant and the Gemm is more than x W + b."""
    around = (*gemm.inputs, *gemm.outputs)
    if any(value is not None and open_dimensions(value) for value in around):
        return False
    if array(gemm.inputs[1]) is None or not is_float(gemm.outputs[0]):
        return False
    factors = attribute(gemm, "alpha", 1.0), attribute(gemm, "beta", 1.0)
    plain = factors == (1.0, 1.0) or (factors[0] == 1.0 and _bias(gemm) is None)
    return not plain or bool(attribute(gemm, "transA", 0)) or not _is_row(gemm)


def _bias(gemm: Node) -> Value | None:
    return gemm.inputs[2] if len(gemm.inputs) > 2 else None


def _is_row(gemm: Node) -> bool:
    """Whether the bias is absent, or constant and the same for every row."""
    bias = _bias(gemm)
    return bias is None or (array(bias) is not None and math.prod(shape(bias)[:-1]) == 1)


def _sides(write: Writing) -> tuple[Value | None, Value | None]:
    """The factors, transposed as the Gemm says."""
    left, right = write.node.inputs[:2]
    if attribute(write.node, "transA", 0):
        left = write.insert("Transpose", [left], "rows")
    if attribute(write.node, "transB", 0) and array(right) is None:
        right = write.insert("Transpose", [right], "columns")
    return left, right


def _rewrite_gemm(write: Writing) -> None:
    gemm, (left, right) = write.node, _sides(write)
    read = [left, _scaled(write, right, attribute(gemm, "alpha", 1.0), "weight")]
    turned = {"transB": attribute(gemm, "transB", 0) or None}
    if _is_row(gemm):
        bias = _scaled(write, _bias(gemm), attribute(gemm, "beta", 1.0), "bias")
        write.become("Gemm", [*read, *([] if bias is None else [bias])], **turned)
        return
    _moved(write, write.insert("Gemm", read, "product", **turned))


def _moved(write: Writing, product: Value | None) -> bool:
    """The product plus beta times the bias."""
    bias = _scaled(write, _bias(write.node), attribute(write.node, "beta", 1.0), "bias")
    return (
        write.become("Identity", [product])
        if bias is None
        else write.become("Add", [product, bias])
    )


def _scaled(write: Writing, value: Value | None, factor: float, name: str) -> Value | None:
    """A constant times the factor, or a Mul before the node."""
    if value is None or factor == 1.0:
        return value
    values = array(value)
    if values is not None:
        return write.constant(values * np.float32(factor), name)
    multiplier = write.constant(np.array(factor, np.float32), f"{name}_factor")
    return write.insert("Mul", [value, multiplier], name)


def _has_vector(node: Node) -> bool:
    dims = [value.shape for value in node.inputs if value is not None]
    static = not any(open_dimensions(value) for value in node.outputs)
    return static and any(shape is not None and len(shape) == 1 for shape in dims)


def _rewrite_vectors(graph: Graph, node: Node) -> None:
    """A vector on the left becomes a row, on the right a column."""
    write, output = Writing(graph, node), node.outputs[0]
    left, right = node.inputs
    assert left is not None
    assert right is not None
    dims, readers = shape(output), [use.node for use in output.uses()]
    if len(shape(left)) == 1:
        left = write.shaped(left, (1, *shape(left)), "reshape_in")
    if len(shape(right)) == 1:
        values = array(right)
        tall = (*shape(right), 1)
        column = None if values is None else write.constant(values.reshape(tall), "column")
        right = column or write.shaped(right, tall, "column")
    graph.set_inputs(node, {0: left, 1: right})
    target = graph.constant(f"{node.name}_dims", np.array(dims, np.int64))
    whole = graph.insert("Reshape", [output, target], f"{node.name}_vector", after=node)
    graph.replace_readers(output, whole, readers)
    if output.is_graph_output():
        graph.replace_output(output, whole)
    graph.forget_shape(output)
