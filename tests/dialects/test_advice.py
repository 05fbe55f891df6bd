"""Advice in a metafile's words: done as told, the metafile means what was tried."""

from __future__ import annotations

import json

import pytest
import yaml

from dialect_cases import document
from npumake.dialects.advice import ADVICE, wording_of
from npumake.dialects.synaptics.dialect import translate
from npumake.dialects.synaptics.keys import METHODS
from npumake.dialects.table import DIALECTS
from npumake.digest import Json
from npumake.project.sections import Calibration

ONNX = {"model": {"path": "net.onnx"}, "targets": ["sl1680"]}
SYNAP = wording_of("synap")
OWN = {"quantization": {"data_type": "uint8", "dataset": "random"}}


def native(metafile: Json) -> Json:
    return translate(document(json.dumps(metafile)), "", ONNX).data


def done(line: str) -> Json:
    """The native document of the metafile with the line in it."""
    said = yaml.safe_load(line)
    inner = {**OWN["quantization"], **said.get("quantization", {})}
    return native({**OWN, **said, "quantization": inner})


def test_every_dialect_that_has_words_is_one_of_ours():
    assert DIALECTS.keys() >= ADVICE.keys()


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ([{"a": "int16"}], "uint8 int16 uint8"),
        ([{"a": "int16"}, {"b": "int16"}], "uint8 int16 int16"),
        ([{"a": "int16"}, {"a": "uint8"}], "uint8 uint8 uint8"),
        ([{"a...": "int16"}, {"b": "float16"}], "uint8 int16 float16"),
    ],
)
def test_types_that_were_tried_are_those_of_the_metafile(rules: Json, expected: str):
    own = native(OWN)["quantization"]
    asked = own | {"types": [*own["types"], *rules]}
    found: dict[str, str] = {}
    for rule in done(SYNAP.line("quantization", asked, own))["quantization"]["types"]:
        found |= rule
    kinds = [found["*"], *(found.get(name, found.get(f"{name}...", found["*"])) for name in "ab")]
    assert " ".join(kinds) == expected


@pytest.mark.parametrize("cpu", [["a"], ["a", "b..."]])
def test_what_was_tried_on_the_cpu_is_delegated_to_it(cpu: list[str]):
    own = native(OWN)["quantization"]
    made = done(SYNAP.line("quantization", own | {"cpu": cpu}, own))["quantization"]
    assert sorted(made["cpu"]) == cpu


@pytest.mark.parametrize("algorithm", METHODS)
def test_a_method_is_an_algorithm(algorithm: str):
    line = SYNAP.line("calibration", {"method": METHODS[algorithm]}, {"method": "another"})
    assert done(line)["calibration"]["method"] == METHODS[algorithm]


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ("calibration", {"method": "mse"}),
        ("calibration", {"method": "max", "symmetric": True}),
        ("quantization", {"layers": {"a": {"output": "int16"}}}),
        ("quantization", {"equalize": True}),
        ("quantization", {}),
    ],
)
def test_what_a_metafile_cannot_say_is_not_advised(section: str, said: Json):
    assert SYNAP.line(section, said, {}) == ""


def test_a_search_is_advised_once():
    assert done(SYNAP.search(Calibration("max")))["calibration"]["method"] == "modelwise"
    assert SYNAP.search(Calibration("modelwise")) == ""


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("write  method: load", "leave `dataset` out"),
        (
            "fix it under `inputs:`, for example  x: {shape: [1, 3, 224, 224]}",
            "inputs: [{name: x, shape: [1, 3, 224, 224]}]",
        ),
        ("paths start at the project's directory", "the metafile's folder"),
        ("add  image: {files: ...}", "here for `image`"),
        ("did you mean `conv6`?", "did you mean `conv6`?"),
    ],
)
def test_a_text_speaks_of_the_metafile(ours: str, theirs: str):
    assert theirs in SYNAP.text(ours)
    assert wording_of(None).text(ours) == ours
