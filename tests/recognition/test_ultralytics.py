"""Exports of Ultralytics: metadata read without running it, and every head of versions 5 to 12."""

from __future__ import annotations

import io
import json
import zipfile

import numpy as np
import pytest

from npumake.detection.decode import decode
from npumake.detection.metadata import read_metadata
from npumake.digest import canonical
from npumake.recognition.families import family_of
from npumake.recognition.tflite_notes import exported_notes
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


TFLITE_NOTES = {"names": NAMES, "stride": 32, "imgsz": [320, 320], "task": "detect"}
PRINTED = {
    "metadata.json": json.dumps(TFLITE_NOTES),
    "temp_meta.txt": str(TFLITE_NOTES),
    "meta.txt": str({"names": NAMES, "stride": 32}),
}


def zipped(member: str, text: str) -> bytes:
    file = io.BytesIO(b"a model")
    file.seek(0, io.SEEK_END)
    with zipfile.ZipFile(file, "a") as archive:
        archive.writestr(member, text)
    return file.getvalue()


@pytest.mark.parametrize("member", PRINTED)
def test_the_notes_of_an_exported_tflite_are_those_of_an_onnx(member: str) -> None:
    found = exported_notes(zipped(member, PRINTED[member]))
    assert class_names(found) == tuple(NAMES.values())
    assert found["stride"] == "32"


@pytest.mark.parametrize("text", ["", "[1]", "{", "(" * 10000, "print('x')", "{1: {2: 3}"])
def test_damaged_notes_are_none(text: str) -> None:
    assert exported_notes(zipped("metadata.json", text)) == {}
    assert exported_notes(text.encode()) == {}


TFLITE_HEADS: dict[str, tuple[dict[str, Shape], str | None, int]] = {
    "v8 detect": ({"y": (1, 7, 2100)}, "detect", 0),
    "v8 segment": ({"y": (1, 39, 2100), "p": (1, 80, 80, 32)}, "segment", 32),
    "v5 detect": ({"y": (1, 6300, 8)}, None, 0),
    "v5 segment": ({"y": (1, 6300, 40), "p": (1, 80, 80, 32)}, None, 32),
}


@pytest.mark.parametrize("name", TFLITE_HEADS)
def test_boxes_of_a_tflite_are_in_0_to_1(name: str) -> None:
    outputs, task, coefficients = TFLITE_HEADS[name]
    found, family = family_of(facts((1, 320, 320, 3), outputs, notes(task), file="m.tflite"))
    assert (found, family.labels, family.doubts) == ("Ultralytics", tuple(NAMES.values()), ())
    metadata = read_metadata(canonical(family.metadata), "edgefirst.json")
    arrays = {key: np.zeros(shape, np.float32) for key, shape in outputs.items()}
    rows = arrays["y"] if name.startswith("v5") else arrays["y"].transpose(0, 2, 1)
    rows[0, 7, :4] = (0.5, 0.5, 0.25, 0.5)
    rows[0, 7, 4 : 8 if name.startswith("v5") else 6] = 0.9
    seen = decode(arrays, metadata.outputs, (320, 320))
    np.testing.assert_allclose(seen.boxes, [[0.375, 0.25, 0.625, 0.75]], atol=1e-6)
    assert (0 if seen.coefficients is None else seen.coefficients.shape[1]) == coefficients
