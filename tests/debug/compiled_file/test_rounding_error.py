"""The bound holds float32 to float64, and is no wider than what it is for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

from npumake.debug.compiled_file.rounding_error import rounding_error, terms
from npumake.engine.ort import OrtSession
from npumake.graph import Graph, parse_text

LOOSE = 2e-3  # of the largest magnitude: far less than a code of int8
HEAD = '<ir_version: 10, opset_import: ["" : {opset}]> net ({inputs}) => (float{shape} y)'
CASES = {
    "Add": ("[4, 64]", "y = Add(x, w)", ["[4, 64]"]),
    "Mul": ("[4, 64]", "y = Mul(x, w)", ["[4, 64]"]),
    "Conv": ("[1, 4, 6, 6]", "y = Conv(x, w)", ["[4, 16, 3, 3]"]),
    "MatMul": ("[1, 5, 64]", "y = MatMul(x, w)", ["[64, 64]"]),
    "ReduceMean": ("[1, 16, 1, 1]", "y = ReduceMean<axes = [2, 3]>(x)", []),
    "AveragePool": ("[1, 16, 6, 6]", "y = AveragePool<kernel_shape = [3, 3]>(x)", []),
    "LayerNormalization": ("[1, 8, 64]", "y = LayerNormalization(x, w, b)", ["[64]", "[64]"]),
    "InstanceNormalization": (
        "[1, 16, 8, 8]",
        "y = InstanceNormalization(x, w, b)",
        ["[16]", "[16]"],
    ),
    "Softmax": ("[4, 64]", "y = Softmax(x)", []),
    "LogSoftmax": ("[4, 64]", "y = LogSoftmax(x)", []),
    "Sigmoid": ("[4, 64]", "y = Sigmoid(x)", []),
    "Softplus": ("[4, 64]", "y = Softplus(x)", []),
    "Elu": ("[4, 64]", "y = Elu(x)", []),
    "Erf": ("[4, 64]", "y = Erf(x)", []),
    "Tanh": ("[4, 64]", "y = Tanh(x)", []),
    "Exp": ("[4, 64]", "y = Exp(x)", []),
    "Reciprocal": ("[4, 64]", "y = Reciprocal(x)", []),
    "Identity": ("[4, 64]", "y = Identity(x)", []),
}
INPUTS = {"Conv": "[1, 16, 8, 8]", "MatMul": "[1, 5, 64]", "ReduceMean": "[1, 16, 8, 8]"}
INPUTS |= {"AveragePool": "[1, 16, 8, 8]"}


def graph_of(name: str) -> Graph:
    shape, body, others = CASES[name]
    names = ("x", "w", "b")[: 1 + len(others)]
    shapes = (INPUTS.get(name, shape), *others)
    inputs = ", ".join(f"float{s} {n}" for n, s in zip(names, shapes, strict=True))
    head = HEAD.format(inputs=inputs, shape=shape, opset=17)
    return parse_text(f"{head} {{ {body} }}").with_shapes()


def fed(graph: Graph, offset: float) -> list[np.ndarray]:
    draw = np.random.default_rng(1)
    return [
        (draw.normal(size=[int(n) for n in v.shape or ()]) * 2 + offset).astype(np.float32)
        for v in graph.inputs
    ]


def bound_and_errors(
    graph: Graph, read: Sequence[np.ndarray]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The bound, the true error of onnxruntime's float32, and the result in float64."""
    session = OrtSession(graph.to_bytes())
    names = session.input_names

    def compute(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        return session.run(None, dict(zip(names, arrays, strict=True)))

    (node,) = graph.nodes()
    (bound,) = rounding_error(compute, node, read, [None] * len(read))
    evaluator = ReferenceEvaluator(graph.to_bytes())
    wide = {n: x.astype(np.float64) for n, x in zip(names, read, strict=True)}
    (exact,) = evaluator.run(None, wide)
    (single,) = compute(read)
    return bound, np.abs(single - exact), exact


@pytest.mark.parametrize("offset", [0.0, 40.0])
@pytest.mark.parametrize("name", [name for name in CASES if name != "Exp"])
def test_float32_is_within_the_bound(name: str, offset: float) -> None:
    graph = graph_of(name)
    bound, error, exact = bound_and_errors(graph, fed(graph, offset))
    assert (error <= bound).all()
    assert bound.max() <= LOOSE * max(1.0, np.abs(exact).max())


def test_a_function_that_grows_has_a_bound_that_grows() -> None:
    graph = graph_of("Exp")
    bound, error, exact = bound_and_errors(graph, fed(graph, 0.0))
    assert (error <= bound).all()
    assert (bound <= LOOSE * exact).all()


def test_what_is_uncertain_of_an_input_is_passed_on() -> None:
    graph = graph_of("Add")
    x, w = fed(graph, 0.0)
    session = OrtSession(graph.to_bytes())
    (node,) = graph.nodes()

    def compute(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        return session.run(None, dict(zip(session.input_names, arrays, strict=True)))

    errors = [np.full(x.shape, 0.25), None]
    (bound,) = rounding_error(compute, node, [x, w], errors, rounds=False)
    assert np.allclose(bound, 0.5, atol=1e-5)


@pytest.mark.parametrize(("name", "length"), [("Conv", 144), ("MatMul", 64), ("AveragePool", 9)])
def test_the_length_of_a_sum_is_that_of_the_node(name: str, length: int) -> None:
    (node,) = graph_of(name).nodes()
    assert terms(node) == length
