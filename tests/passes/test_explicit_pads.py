"""auto_pad written out, for every size that fits a small image."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from draws import examples
from npumake.engine.ort import OrtSession
from npumake.errors import GraphError
from npumake.graph import attribute, parse_text
from npumake.passes.explicit_pads import explicit_pads

POOL = "agraph (float[1,1,{h},{w}] x) => (float[1,1,N,M] y) {{ y = {op}<{attributes}>(x) }}"


def pads_of(attributes: str, h: int, w: int) -> tuple[int, ...]:
    graph = parse_text(POOL.format(op="MaxPool", attributes=attributes, h=h, w=w))
    assert explicit_pads(graph) == 1
    assert attribute(graph.nodes()[0], "auto_pad") is None
    return attribute(graph.nodes()[0], "pads")


def test_the_odd_zero_goes_to_the_beginning_for_lower_and_to_the_end_for_upper():
    lower = 'auto_pad="SAME_LOWER", kernel_shape=[3,2], strides=[2,2]'
    assert pads_of(lower, h=6, w=5) == (1, 1, 0, 0)
    assert pads_of(lower.replace("LOWER", "UPPER"), h=6, w=5) == (0, 0, 1, 1)


def test_a_kernel_smaller_than_its_stride_needs_no_pads():
    assert pads_of('auto_pad="SAME_UPPER", kernel_shape=[1,1], strides=[3,3]', 7, 6) == (0, 0, 0, 0)


def test_pads_already_written_are_left_alone():
    text = POOL.format(op="MaxPool", attributes="kernel_shape=[2,2], pads=[1,1,0,0]", h=4, w=4)
    assert explicit_pads(parse_text(text)) == 0


def test_an_open_image_size_is_an_error_that_says_what_to_do():
    text = """agraph (float[1,1,H,4] x) => (float[1,1,N,M] y) {
        y = MaxPool<auto_pad = "SAME_UPPER", kernel_shape = [2,2]>(x) }"""
    with pytest.raises(GraphError, match=r"not static.*fixed shape under `inputs:`"):
        explicit_pads(parse_text(text))


@examples(60)
@given(
    op=st.sampled_from(["MaxPool", "AveragePool"]),
    auto=st.sampled_from(["SAME_UPPER", "SAME_LOWER", "VALID"]),
    size=st.tuples(st.integers(4, 9), st.integers(4, 9)),
    kernel=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    stride=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    ceil=st.integers(0, 1),
)
def test_a_pool_keeps_its_output(op, auto, size, kernel, stride, ceil):
    stride = np.minimum(stride, kernel)  # onnxruntime refuses SAME where pixels are skipped
    window = f"kernel_shape={list(kernel)}, strides={stride.tolist()}"
    attributes = f'auto_pad="{auto}", {window}, ceil_mode={ceil}'
    graph = parse_text(POOL.format(op=op, attributes=attributes, h=size[0], w=size[1]))
    x = {"x": np.random.default_rng(0).normal(size=(1, 1, *size)).astype(np.float32)}
    (before,) = OrtSession(graph.to_bytes()).run(None, x)
    explicit_pads(graph)
    (after,) = OrtSession(graph.to_bytes()).run(None, x)
    np.testing.assert_array_equal(after, before)
