"""A model that hands out other tensors: run, it gives what the graph's nodes make."""

import numpy as np

from npumake.engine.ort import OrtSession
from npumake.graph import ExtraOutput, Graph, dtype, parse_text, shape, with_outputs

GRAPH = parse_text("a (float[1,2,4,4] x) => (float[] y) { r = Relu(x)  y = Neg(r) }")


def test_it_hands_out_inputs_tensors_within_and_new_ones_and_leaves_the_graph_as_it_was():
    before = GRAPH.to_bytes()
    grid = {"kernel_shape": [1, 1], "strides": [2, 2]}
    handed = [
        "x",
        "r",
        ExtraOutput("some", "MaxPool", "r", grid),
        ExtraOutput("most", "GlobalMaxPool", "r"),
    ]
    session = OrtSession(with_outputs(GRAPH, handed))
    assert session.output_names == ("x", "r", "some", "most")
    x = np.random.default_rng(0).normal(size=(1, 2, 4, 4)).astype(np.float32)
    found = session.run(None, {"x": x})
    r = np.maximum(x, 0)
    expected = [x, r, r[:, :, ::2, ::2], r.max(axis=(2, 3), keepdims=True)]
    assert all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))
    assert GRAPH.to_bytes() == before


def test_read_again_its_tensors_are_of_the_types_they_were():
    found = Graph.from_bytes(with_outputs(GRAPH.with_shapes(), ["x", "r", "y"]))
    assert [(dtype(v), shape(v)) for v in found.outputs] == [("float32", (1, 2, 4, 4))] * 3
