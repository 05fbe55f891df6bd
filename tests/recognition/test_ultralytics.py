"""Exports of Ultralytics: metadata read without running it, and every head of versions 5 to 12."""

from __future__ import annotations

import pytest

from npumake.detection.metadata import read_metadata
from npumake.digest import canonical
from npumake.recognition.families import family_of
from npumake.recognition.ultralytics import class_names, exported_size
from recognized_models import Shape, facts

NAMES = {0: "cat", 1: "dog", 2: 'it\'s "quoted"'}
SQUARE = (1, 3, 320, 320)
PROTOS = (1, 32, 80, 80)
# outputs, task (None where version 5 notes none), whether it splits, type of the first output
HEADS: dict[str, tuple[dict[str, Shape], str | None, bool, str]] = {
    "v8 detect": ({"y": (1, 7, 2100)}, "detect", False, ""),
    "v8 segment": ({"y": (1, 39, 2100), "p": PROTOS}, "segment", False, ""),
    "v8 pose": ({"y": (1, 58, 2100)}, "pose", True, ""),
    "v8 obb": ({"y": (1, 8, 2100)}, "obb", True, ""),
    "v10 detect": ({"y": (1, 300, 6)}, "detect", False, ""),
    "v5 detect": ({"y": (1, 6300, 8)}, None, False, "detection"),
    "v5 segment": ({"y": (1, 6300, 40), "p": PROTOS}, None, False, "detection"),
}


def notes(task: str | None) -> dict[str, str]:
    told = {"names": str(NAMES), "stride": "32", "imgsz": "[320, 320]"}
    return told | ({"task": task} if task else {})


@pytest.mark.parametrize("name", HEADS)
def test_every_head_gets_metadata_that_reads_back(name: str) -> None:
    outputs, task, splits, kind = HEADS[name]
    found, family = family_of(facts(SQUARE, outputs, notes(task)))
    assert (found, family.labels, family.split) == ("Ultralytics", tuple(NAMES.values()), splits)
    metadata = read_metadata(canonical(family.metadata), "edgefirst.json")
    assert metadata.end2end == name.startswith("v10")
    assert [hint.boundaries[1].end for hint in metadata.hints] == [7] * splits
    assert [output.type for output in metadata.outputs][:1] == ([kind] if kind else [])
    assert family.doubts == ()


@pytest.mark.parametrize(
    ("task", "mean"), [("classify", (0.0,)), (None, (123.675, 116.28, 103.53))]
)
def test_a_classifier_crops_the_middle(task: str | None, mean: tuple[float, ...]) -> None:
    """Version 8 takes 0..1, version 5 ImageNet's mean and std."""
    _, family = family_of(facts((1, 3, 224, 224), {"y": (1, 3)}, notes(task)))
    assert family.task == "classify"
    assert family.feeds[0].mean == mean
    assert [step.name for step in family.resize] == ["short_side_resize", "center_crop"]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (str(NAMES), tuple(NAMES.values())),
        ("['a', 'b']", ("a", "b")),
        ('{"0": "a"}', ()),  # keys are numbers
        ("{0: 'a', 2: 'b'}", ()),
        ("__import__('os').getcwd()", ()),
        ("{0: " * 5000, ()),
        ("", ()),
        ("7", ()),
    ],
)
def test_names_are_literals_or_nothing(text: str, names: tuple[str, ...]) -> None:
    assert class_names({"names": text}) == names


@pytest.mark.parametrize(
    ("text", "size"),
    [("[480, 640]", (480, 640)), ("640", (640, 640)), ("[0, 0]", None), ("x", None), ("[1]", None)],
)
def test_the_size_of_an_export(text: str, size: tuple[int, int] | None) -> None:
    assert exported_size({"imgsz": text}) == size
