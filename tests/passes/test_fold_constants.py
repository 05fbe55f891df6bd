"""Nodes that read only constants, computed now."""

import numpy as np
import pytest

from npumake.graph import array, parse_text
from npumake.passes.fold_constants import MAX_GROWTH, fold_constants


def folded(text: str) -> tuple[int, np.ndarray | None]:
    """How many nodes were folded, and what the last node then reads second."""
    graph = parse_text(text)
    count = fold_constants(graph)
    return count, array(graph.nodes()[-1].inputs[1])


def test_a_folded_scalar_stays_a_scalar():
    count, found = folded(
        "agraph (float[2] x) => (float[2] y) <float c = {2}> { a = Neg(c)  y = Mul(x, a) }"
    )
    assert count == 1
    assert found.shape == ()
    assert found == -2.0


@pytest.mark.parametrize(
    ("attributes", "dims"),
    [
        ("", [2, 3, 4]),
        ("<start=1>", [3, 4]),
        ("<end=2>", [2, 3]),
        ("<start=-2, end=-1>", [3]),
        ("<start=-9, end=9>", [2, 3, 4]),
        ("<start=2, end=1>", []),
    ],
)
def test_a_static_shape_is_a_constant(attributes, dims, outputs):
    graph = parse_text(
        f"agraph (float[2,3,4] x) => (int64[N] y) {{ a = Shape{attributes}(x)  y = Neg(a) }}"
    )
    before = outputs(graph)
    assert fold_constants(graph) == 1
    found = array(graph.nodes("Neg")[0].inputs[0])
    assert found.tolist() == dims
    assert found.dtype == np.int64
    np.testing.assert_array_equal(outputs(graph)["y"], before["y"])


def test_an_open_shape_is_not_a_constant():
    count, found = folded(
        "agraph (float[N,4] x, float[N,4] z) => (float[N,4] y) { s = Shape(x)  y = Reshape(z, s) }"
    )
    assert count == 0
    assert found is None


@pytest.mark.parametrize(("size", "count"), [(MAX_GROWTH // 4, 1), (MAX_GROWTH // 4 + 9, 0)])
def test_what_would_swell_the_file_is_left_alone(size, count):
    text = f"""agraph (float[1] x) => (float[{size}] y) <int64[1] s = {{{size}}}>
        {{ a = ConstantOfShape(s)  y = Add(x, a) }}"""
    assert folded(text)[0] == count


@pytest.mark.parametrize(
    "node",
    [
        "RandomUniform<shape=[2]>()",
        "RandomNormalLike(c)",
        "Bernoulli(c)",
        "Dropout(c, ratio, on)",
    ],
)
def test_chance_is_not_a_constant(node):
    text = f"""agraph (float[2] x) => (float[2] y)
        <float[2] c = {{0.5, 0.5}}, float ratio = {{0.5}}, bool on = {{1}}>
        {{ a = {node}  y = Add(x, a) }}"""
    assert folded(text)[0] == 0


def test_a_quantized_weight_stays_quantized():
    text = """agraph (float[2] x) => (float[2] y)
        <int8[2] q = {1, 2}, float s = {0.5}, int8 z = {0}>
        { a = DequantizeLinear(q, s, z)  y = Add(x, a) }"""
    assert folded(text)[0] == 0


def test_a_sequence_is_left_alone():
    text = """agraph (float[2] x, int64 at) => (float[1] y) <float[2] c = {1, 2}>
        { a = SplitToSequence<keepdims=1>(c)  y = SequenceAt(a, at) }"""
    assert folded(text)[0] == 0
