"""A head is cut where its parts still have ranges of their own, and computes what it did."""

from __future__ import annotations

import json

import numpy as np
import pytest

from detection.heads import BINS, BOXES, CLASSES, COEFFICIENTS, SIDE, STRIDES, document, head, hint
from npumake.detection.decode import Rules, decode
from npumake.detection.describe import whole_outputs
from npumake.detection.distance import distance_to_box
from npumake.detection.metadata import Metadata, SplitHint, read_metadata, with_outputs
from npumake.detection.outputs import DetectorOutput
from npumake.detection.split import split_outputs
from npumake.engine.ort import OrtSession
from npumake.errors import GraphError
from npumake.graph import Graph, parse

PICTURE = np.random.default_rng(1).normal(size=(1, 3, SIDE, SIDE)).astype(np.float32)
ALL = Rules(score=0.0, candidates=0, iou=0.7)


def metadata(**changes: object) -> Metadata:
    return read_metadata(json.dumps(document(**changes)), "e.json")


def hints(masks: bool = True, strides: bool = False) -> tuple[SplitHint, ...]:
    return metadata(split_hints=[hint(masks, strides)]).hints


def graph(masks: bool = True, bins: int = BINS, normalized: bool = False) -> Graph:
    return parse(head(masks, bins, normalized), "head.onnx").with_shapes()


def arrays(graph: Graph) -> dict[str, np.ndarray]:
    names = [str(value.name) for value in graph.outputs]
    made = OrtSession(graph.to_bytes()).run(None, {"images": PICTURE})
    return dict(zip(names, made, strict=True))


def tensors(outputs: tuple[DetectorOutput, ...]) -> list[str]:
    return [tensor.name for output in outputs for tensor in output.tensors]


def test_without_strides_a_segmentation_head_gives_five_outputs():
    cut, outputs = split_outputs(graph(), hints())
    assert tensors(outputs) == [str(value.name) for value in cut.outputs]
    assert tensors(outputs) == [
        *("_Mul_2_xy", "_Mul_2_wh", "_Sigmoid", "_Concat_coefs", "output1"),
    ]
    boxes, scores, coefficients, protos = outputs
    assert [child.type for child in boxes.outputs] == ["boxes_xy", "boxes_wh"]
    assert (boxes.shape, boxes.encoding, boxes.normalized) == ((1, 4, BOXES), "direct", False)
    assert [child.dshape[1] for child in boxes.outputs] == [("box_coords", 2)] * 2
    assert (scores.shape, scores.activation_applied) == ((1, CLASSES, BOXES), "sigmoid")
    assert (scores.activation_required, scores.score_format) == (None, "per_class")
    assert coefficients.dshape[1] == ("num_protos", COEFFICIENTS)
    assert (protos.type, protos.stride, protos.decoder) == ("protos", (8, 8), None)


def test_with_strides_it_gives_ten():
    cut, outputs = split_outputs(graph(), hints(strides=True))
    expected = [f"_cv{part}_{scale}_Conv" for part in (2, 3, 4) for scale in range(3)]
    assert tensors(outputs) == [*expected, "output1"]
    assert len(cut.outputs) == 10
    boxes, scores, coefficients, _ = outputs
    assert (boxes.shape, boxes.encoding, boxes.normalized) == ((1, 4, BOXES), "dfl", False)
    assert [child.shape[1] for child in boxes.outputs] == [4 * BINS] * 3
    for part in (boxes, scores, coefficients):
        assert [child.stride[0] for child in part.outputs] == list(STRIDES)
        assert [child.scale_index for child in part.outputs] == [0, 1, 2]
    assert (scores.activation_required, coefficients.activation_required) == ("sigmoid", None)


@pytest.mark.parametrize("strides", [False, True])
@pytest.mark.parametrize("masks", [False, True])
@pytest.mark.parametrize("bins", [1, BINS])
@pytest.mark.parametrize("normalized", [False, True])
def test_a_cut_head_decodes_to_what_the_whole_one_does(masks, strides, bins, normalized):
    whole = graph(masks, bins, normalized)
    cut, outputs = split_outputs(whole, hints(masks, strides))
    given = whole_outputs(whole, hints(masks))
    expected = decode(arrays(whole), given, (SIDE, SIDE), ALL)
    found = decode(arrays(cut), outputs, (SIDE, SIDE), ALL)
    assert len(expected.boxes) > 10
    np.testing.assert_array_equal(found.classes, expected.classes)
    np.testing.assert_allclose(found.boxes, expected.boxes, atol=1e-5)
    np.testing.assert_allclose(found.scores, expected.scores, atol=1e-6)
    if masks:
        assert np.mean(found.masks != expected.masks) < 1e-3


@pytest.mark.parametrize("strides", [False, True])
def test_the_graph_that_was_given_is_left_alone(strides):
    whole = graph()
    before = whole.to_bytes()
    split_outputs(whole, hints(strides=strides))
    assert whole.to_bytes() == before


@pytest.mark.parametrize("strides", [False, True])
def test_its_outputs_are_a_metadata_that_is_read_again(strides):
    _, outputs = split_outputs(graph(), hints(strides=strides))
    told = with_outputs(metadata(), outputs)
    assert told.outputs == outputs
    assert "split_hints" not in told.document
    assert {k: v for k, v in told.document.items() if k != "outputs"} == {
        k: v for k, v in metadata().document.items() if k != "split_hints"
    }


def test_whether_boxes_are_in_pixels_is_read_off_the_graph():
    for normalized in (False, True):
        _, (boxes, *_) = split_outputs(graph(normalized=normalized), hints())
        assert boxes.normalized == normalized


def test_parts_of_a_node_come_from_where_it_did():
    cut, _ = split_outputs(graph(), hints())
    assert [str(node.name) for node in cut.find("/Mul_2")] == ["/Mul_2_wh", "/Mul_2_xy"]


ARITHMETIC = ("/Slice", "/Slice_1", "/Sub", "/Add", "/Add_1", "/Div_1", "/Sub_1", "/Concat_xywh")


def test_distances_become_boxes_behind_the_projection_and_before_the_scores():
    assert distance_to_box(graph()) == (*ARITHMETIC, "/Mul_2")
    assert distance_to_box(graph(bins=1)) == (*ARITHMETIC, "/Mul_2")
    assert distance_to_box(graph(masks=False, normalized=True)) == ARITHMETIC


def test_they_are_found_in_a_cut_head_and_not_where_they_are_cut_off():
    cut, _ = split_outputs(graph(), hints())
    assert distance_to_box(cut) == (*ARITHMETIC[:-1], "/Mul_2_wh", "/Mul_2_xy")
    cut, _ = split_outputs(graph(), hints(strides=True))
    assert distance_to_box(cut) == ()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"target": "output9"}, "no output `output9`"),
        ({"boundaries": [{"name": "boxes", "channels": [0, 9]}]}, "speak of 9 channels"),
        (
            {
                "boundaries": [
                    {"name": "boxes", "channels": [0, 3]},
                    {"name": "x", "channels": [3, 11]},
                ]
            },
            "not joined at channels 0..3",
        ),
        ({"strides": [4, 8, 16]}, "8 rows of cells for stride 4"),
        ({"strides": [8, 16]}, "not joined from 2 scales"),
        ({"anchors_per_cell": 3}, "3 anchors per cell"),
        ({"target": "output1"}, "speak of 11 channels"),
        (
            {
                "boundaries": [
                    {"name": "boxes", "channels": [0, 4]},
                    {"name": "x", "channels": [4, 11]},
                ]
            },
            "`x` is 2 tensors",
        ),
    ],
)
def test_a_hint_that_does_not_fit_is_one_error(change, message):
    found = metadata(split_hints=[hint() | change]).hints
    with pytest.raises(GraphError, match=message) as caught:
        split_outputs(graph(), found)
    assert caught.value.hint
