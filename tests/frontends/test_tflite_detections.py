"""A detector is read up to its postprocessor, whose anchors are told."""

from __future__ import annotations

import numpy as np

from frontends.tflite_writer import Op, T, constant, written
from npumake.frontends import read_model
from npumake.frontends.tflite.detections import POSTPROCESS, anchors

ANCHORS = np.arange(20, dtype=np.float32).reshape(5, 4) / 8


def detector() -> bytes:
    """Boxes and scores by tables, then the postprocessor and what it makes."""
    fed = [T((1, 5, 4)), T((1, 5, 3)), T((1, 5, 4)), T((1, 5, 3)), constant(ANCHORS)]
    made = [T((1, 2, 4)), T((1, 2)), T((1, 2)), T((1,))]
    steps = [Op("TANH", [0], [2]), Op("LOGISTIC", [1], [3])]
    steps.append(Op(POSTPROCESS, [2, 3, 4], [5, 6, 7, 8]))
    return written([*fed, *made], steps, [0, 1], [5, 6, 7, 8])


def test_a_detector_ends_where_its_postprocessor_begins():
    graph = read_model(detector(), "ssd.tflite")
    assert [node.op_type for node in graph.nodes()] == ["Tanh", "Sigmoid"]
    assert [str(value.name) for value in graph.outputs] == ["t2", "t3"]


def test_its_anchors_are_those_of_the_file():
    assert np.array_equal(anchors(detector()), ANCHORS)


def test_a_model_without_one_has_no_anchors():
    data = written([T((1, 4)), T((1, 4))], [Op("TANH", [0], [1])], [0], [1])
    assert anchors(data) is None
