"""BOXES: the arithmetic from distances to boxes, asked for by one word like any other name."""

from __future__ import annotations

import pytest

from detection.heads import head
from npumake.detection.distance import distance_to_box
from npumake.detection.notes import mark_boxes
from npumake.graph import Graph, parse, upgraded
from npumake.passes import optimized
from npumake.project.precision import Types
from npumake.project.sections import Quantization
from npumake.quant.precision.precision_plan import PrecisionPlan, plan_precision
from npumake.targets.reader import read_target

MASKS = ("/cv4.0/Conv", "/cv4.2/Conv", "/Concat_coefs", "output1", "/Sigmoid", "/dfl/conv/Conv")


def marked() -> Graph:
    graph = upgraded(parse(head(), "head")).with_shapes()
    graph.expose(["/Div_1", "/Sub_1", "/Sigmoid", "/Concat_coefs", "output1"])
    graph.drop_unused()
    mark_boxes(graph, distance_to_box(graph))
    return optimized(graph)


def plan(types: Types, target: str = "ara240", graph: Graph | None = None) -> PrecisionPlan:
    return plan_precision(graph or marked(), Quantization(types), read_target(target))


def wide(found: PrecisionPlan) -> set[str]:
    return {str(value.name) for value, type in found.makes.items() if type == "int16"}


def test_boxes_are_int16_and_masks_scores_and_the_projection_are_not():
    found = wide(plan({"BOXES": "int16"}))
    assert found == {"/Slice", "/Slice_1", "/Sub", "/Add", "/Add_1", "/Div_1", "/Sub_1"}
    assert found.isdisjoint(MASKS)


@pytest.mark.parametrize(
    ("types", "expected"),
    [
        ({"BOXES": "int16", "/Sub_1": "int8"}, False),
        ({"*": "int8", "BOXES": "int16"}, True),
        (({"BOXES": "int16"}, {"*": "int8"}), False),
    ],
)
def test_a_rule_of_the_user_beats_it_as_names_beat_each_other(types, expected):
    assert ("/Sub_1" in wide(plan(types))) is expected


def test_a_chip_without_int16_keeps_8_bits_and_says_so():
    found = plan({"BOXES": "int16"}, "rdk-x3")
    assert not wide(found)
    assert any("rdk-x3 has no int16 for this operator: " in note for note in found.notes)


def test_a_model_without_such_nodes_is_told_so():
    graph = marked()
    mark_boxes(graph, ())
    found = plan({"BOXES": "int16"}, graph=graph)
    assert found.notes == (
        "BOXES has no effect: no node of the model computes boxes from distances",
    )
    assert not wide(found)
