"""What OpenVINO is given: an average that counts its pads is a sum, which it computes right."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.compilers.openvino_graph import for_openvino
from pipeline.engine.ort import OrtSession
from pipeline.errors import GraphError
from pipeline.graph import parse_text

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
