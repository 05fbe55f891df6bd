"""What OpenVINO is given: an average that counts its pads is a sum, which it computes right."""

from __future__ import annotations

import numpy as np
import pytest

from npumake.compilers.openvino_graph import for_openvino
from npumake.engine.ort import OrtSession
from npumake.errors import GraphError
from npumake.graph import parse_text

POOL = "kernel_shape=[3,2], strides=[2,1], pads=[1,0,1,1]"


def pooled(options):
    return parse_text(
        f"agraph (float[1,3,7,5] x) => (float[] y) {{ y = AveragePool<{POOL}{options}>(x) }}"
    )


def test_counted_pads_are_a_convolution_of_the_same_numbers():
    graph = pooled(", count_include_pad=1")
    mended = for_openvino(graph)
    assert [node.op_type for node in mended.nodes()] == ["Conv"]
    x = {"x": np.random.default_rng(0).normal(size=(1, 3, 7, 5)).astype(np.float32)}
    (meant,), (found,) = (OrtSession(g.to_bytes()).run(None, x) for g in (graph, mended))
    np.testing.assert_allclose(found, meant, rtol=1e-5, atol=1e-6)


def test_another_average_is_left_as_it_is():
    graph = pooled("")
    assert for_openvino(graph) is graph


def test_windows_that_overhang_what_they_count_are_refused_by_name():
    with pytest.raises(GraphError, match="`y`") as caught:
        for_openvino(pooled(", count_include_pad=1, ceil_mode=1"))
    assert "ceil_mode = 0" in caught.value.hint


RESIZE = 'y = Resize<mode="{}", coordinate_transformation_mode="half_pixel"{}>(x, , , to)'


def resized(mode, options=""):
    body = RESIZE.format(mode, options)
    text = f"(float[1,2,20,3] x) => (float[] y) <int64[4] to = {{1,2,6,9}}> {{ {body} }}"
    return parse_text(f'<ir_version: 9, opset_import: ["" : 20]> agraph {text}')


def test_a_nearest_resize_reads_what_onnx_says():
    graph = resized("nearest", ', nearest_mode="round_prefer_ceil"')
    mended = for_openvino(graph)
    assert {node.op_type for node in mended.nodes()} == {"Gather", "Identity"}
    x = {"x": np.arange(120, dtype=np.float32).reshape(1, 2, 20, 3)}
    (meant,), (found,) = (OrtSession(g.to_bytes()).run(None, x) for g in (graph, mended))
    assert np.array_equal(found, meant)


def test_what_openvino_ignores_is_refused_by_name():
    with pytest.raises(GraphError, match="antialias of `y`"):
        for_openvino(resized("linear", ", antialias=1"))


@pytest.mark.parametrize(
    ("body", "ignored"),
    [
        ("y, h, c = LSTM<hidden_size = 2>(x, w, r, , , , , p)", "the peepholes"),
        ("y, h, c = LSTM<hidden_size = 2, input_forget = 1>(x, w, r)", "input_forget"),
    ],
)
def test_what_openvino_ignores_of_an_lstm_is_refused(body: str, ignored: str) -> None:
    graph = parse_text(
        '<ir_version: 8, opset_import: ["" : 17]> net (float[3, 1, 2] x, float[1, 8, 2] w, '
        f"float[1, 8, 2] r, float[1, 6] p) => (float[3, 1, 1, 2] y) {{ [lstm] {body} }}"
    )
    with pytest.raises(GraphError, match=f"OpenVINO ignores {ignored} of `lstm`"):
        for_openvino(graph)
