"""Shapes of pools with ceil_mode: onnx counts a window that no engine computes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from draws import examples
from npumake.engine.ort import OrtSession
from npumake.errors import GraphError
from npumake.graph import Graph, attribute, parse_text, shape


def pooled(op: str, size: tuple[int, int], attributes: str, behind: str = "y = Relu(p)") -> Graph:
    h, w = size
    return parse_text(f"""a (float[1,1,{h},{w}] x) => (float[A,B,N,M] y) {{
        p = {op}<ceil_mode=1, {attributes}>(x)  {behind} }}""")


def test_a_window_that_would_start_in_the_padding_is_not_counted():
    graph = pooled("MaxPool", (4, 4), "kernel_shape=[2,2], strides=[2,2], pads=[0,0,1,1]")
    assert shape(graph.outputs[0]) == (1, 1, 2, 2)
    assert attribute(graph.nodes()[0], "ceil_mode") is None


def test_a_window_that_hangs_over_the_end_is_counted():
    graph = pooled("MaxPool", (5, 5), "kernel_shape=[2,2], strides=[2,2]")
    assert shape(graph.outputs[0]) == (1, 1, 3, 3)
    assert attribute(graph.nodes()[0], "ceil_mode") == 1


LARGER = {  # a window that no padded input has room for
    "MaxPool": "y = MaxPool<kernel_shape=[2,2], strides=[2,2]>(x)",
    "AveragePool": "y = AveragePool<kernel_shape=[1,5], pads=[0,1,0,0]>(x)",
    "LpPool": 'y = LpPool<kernel_shape=[2,1], auto_pad="VALID">(x)',
    "dilated": "y = MaxPool<kernel_shape=[1,2], dilations=[1,3]>(x)",
    "rounded up": "y = MaxPool<kernel_shape=[3,1], strides=[2,1], ceil_mode=1>(x)",
    "Conv": "y = Conv<strides=[2,2]>(x, w)",
}
FITTING = {
    "rounded up": "y = MaxPool<kernel_shape=[2,2], strides=[2,2], ceil_mode=1>(x)",
    "padded": "y = MaxPool<kernel_shape=[2,2], strides=[2,2], pads=[1,1,1,1]>(x)",
    "SAME": 'y = MaxPool<kernel_shape=[3,3], auto_pad="SAME_LOWER">(x)',
    "exactly": "y = AveragePool<kernel_shape=[1,3]>(x)",
}
OF_ONE_ROW = "a (float[1,1,1,3] x) => (float[A,B,N,M] z) <float[1,1,2,2] w = {1,2,3,4}>"


@pytest.mark.parametrize("case", LARGER)
def test_a_window_larger_than_its_input_is_refused_by_name(case):
    with pytest.raises(
        GraphError, match=r"`.+`: its window .* is larger than its padded"
    ) as caught:
        parse_text(f"{OF_ONE_ROW} {{ {LARGER[case]} z = Relu(y) }}")
    assert caught.value.hint


@pytest.mark.parametrize("case", FITTING)
def test_a_window_as_large_as_its_input_is_computed(case):
    graph = parse_text(f"{OF_ONE_ROW} {{ {FITTING[case]} z = Relu(y) }}")
    (found,) = OrtSession(graph.to_bytes()).run(None, {"x": np.ones((1, 1, 1, 3), np.float32)})
    assert found.shape == shape(graph.outputs[0])


def test_a_pool_behind_a_miscounted_pool_is_counted_on_what_it_is_given():
    window = "kernel_shape=[2,2], strides=[2,2], pads=[0,0,1,1]"
    graph = pooled("MaxPool", (8, 8), window, f"y = MaxPool<ceil_mode=1, {window}>(p)")
    assert shape(graph.outputs[0]) == (1, 1, 2, 2)


@examples(80)
@given(
    op=st.sampled_from(["MaxPool", "AveragePool"]),
    size=st.tuples(st.integers(4, 9), st.integers(4, 9)),
    kernel=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    stride=st.tuples(st.integers(1, 5), st.integers(1, 5)),
    pads=st.tuples(*[st.integers(0, 3)] * 4),
)
def test_shapes_are_those_onnxruntime_makes_and_the_numbers_stay(op, size, kernel, stride, pads):
    pads = np.minimum(pads, np.array(kernel * 2) - 1).tolist()
    window = f"kernel_shape={list(kernel)}, strides={list(stride)}, pads={pads}"
    text = f"""<ir_version: 9, opset_import: ["" : 17]> a (float[1,1,{size[0]},{size[1]}] x) =>
        (float[A,B,N,M] y) {{ y = {op}<ceil_mode=1, {window}>(x) }}"""
    graph = parse_text(text)
    image = {"x": np.random.default_rng(0).normal(size=(1, 1, *size)).astype(np.float32)}
    (after,) = OrtSession(graph.to_bytes()).run(None, image)
    assert after.shape == shape(graph.outputs[0])
    given_ = graph.copy()
    (node,) = given_.nodes()
    given_.set_attributes(node, ceil_mode=1, pads=pads)
    (before,) = OrtSession(given_.to_bytes()).run(None, image)
    np.testing.assert_array_equal(after, before)


def test_an_average_that_counts_padding_and_needs_both_is_refused():
    with pytest.raises(GraphError, match="omits a window on one axis"):
        pooled(
            "AveragePool",
            (4, 5),
            "kernel_shape=[2,2], strides=[2,2], pads=[0,0,1,0], count_include_pad=1",
        )


@pytest.mark.parametrize(
    ("size", "hint"),
    [("4", "end the model before it, by `model.outputs`"), ("N", "give every input a fixed shape")],
)
def test_a_size_left_open_is_told_with_what_decides_it(size, hint):
    """The places of what is not zero are as many as the numbers say."""
    graph = parse_text(f"agraph (float[{size}] x) => (int64[1, M] y) {{ y = NonZero(x) }}")
    with pytest.raises(GraphError) as caught:
        shape(graph.with_shapes().outputs[0])
    assert caught.value.what == "the shape of `y` is not static: [1, ?]"
    assert hint in caught.value.hint
