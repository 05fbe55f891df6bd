"""MASKS: what gives a detector's mask coefficients, its result alone, and where they are joined."""

from __future__ import annotations

from pathlib import Path

import pytest

from detection.heads import head, hint, props
from npumake.engine.fusion import result
from npumake.graph import Graph
from npumake.project.precision import Types
from npumake.project.sections import Quantization
from npumake.quant.precision.placement import observed_tensors
from npumake.quant.precision.precision_plan import PrecisionPlan, plan_precision
from npumake.stages.optimized_float import optimized_float
from npumake.targets.reader import read_target
from stages.test_detector import made

CONVS = {f"/cv4.{scale}/Conv" for scale in range(3)}
MOVED = {f"/cv4.{scale}/Reshape" for scale in range(3)} | {"_Concat_coefs"}


def cut(folder: Path, split: str | None = "hints", masks: bool = True) -> Graph:
    hints = [hint(masks=masks)]
    model = head(masks=masks, edgefirst=props(split_hints=hints))
    return optimized_float(made(folder, model, split=split))


def plan(graph: Graph, types: Types, target: str = "ara240", **steps: float) -> PrecisionPlan:
    return plan_precision(graph, Quantization(types), read_target(target), steps)


def wide(found: PrecisionPlan) -> set[str]:
    return {str(value.name) for value, type in found.makes.items() if type == "int16"}


def test_coefficients_are_int16_from_the_layers_that_make_them(tmp_path):
    found = plan(cut(tmp_path), {"MASKS": "int16"})
    assert wide(found) == CONVS | MOVED
    reads = {str(node.name): type for (node, _), type in found.reads.items()}
    assert {reads[name] for name in CONVS} == {"int8"}


@pytest.mark.parametrize(
    ("types", "expected"),
    [
        ({"MASKS": "int16", "/cv4.1/Conv": "int8"}, False),
        ({"*": "int8", "MASKS": "int16"}, True),
        (({"MASKS": "int16"}, {"*": "int8"}), False),
    ],
)
def test_names_beat_it_and_it_beats_everything(tmp_path, types, expected):
    assert ("/cv4.1/Conv" in wide(plan(cut(tmp_path), types))) is expected


def test_a_part_of_an_output_is_told_and_a_model_without_masks_is_not(tmp_path):
    told, silent = (
        plan(cut(tmp_path, split, masks), {"MASKS": "int16"})
        for split, masks in ((None, True), ("hints", False))
    )
    assert [note for note in told.notes if "coefficients" in note] == [
        "mask coefficients stay in 8 bits: they are part of an output"
    ]
    assert not [note for note in silent.notes if "coefficients" in note]
    assert not wide(told)
    assert not wide(silent)


@pytest.mark.parametrize(("target", "expected"), [("ara240", True), ("nash-e", False)])
def test_a_converters_chip_joins_them_however_unlike_their_ranges(tmp_path, target, expected):
    graph = cut(tmp_path)
    steps = dict.fromkeys(observed_tensors(graph), 1.0) | {"/cv4.0/Conv": 100.0}
    found = plan_precision(graph, Quantization(), read_target(target), steps)
    chip = {str(result(node).name) for node in found.chip}
    assert ("_Concat_coefs" in chip) is expected
