"""The Ara2 Converter's form, translated."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dialect_cases import ARA2, document
from npumake.dialects.edgefirst.dialect import notes, translate
from npumake.dialects.edgefirst.keys import IGNORED, KEYS
from npumake.digest import Json
from npumake.errors import ProjectError

OTHERS = {
    "model": "other.onnx",
    "int16_mode": "int8",
    "calibration": "other.safetensors",
    "metadata": "other.json",
    "task": "bt-1",
    "studio_server": "saas.edgefirst.studio",
}


def form(**changes: Any) -> str:
    kept = document(ARA2).data | changes
    return json.dumps({key: value for key, value in kept.items() if value is not None}, indent=1)


def native(**changes: Any) -> Json:
    return translate(document(form(**changes)), "studio").data


def test_the_form_becomes_a_native_project():
    assert native() == {
        "model": {
            "path": "studio/yolov8n-seg.onnx",
            "split": "hints",
            "metadata": "studio/edgefirst.json",
        },
        "quantization": {"types": {"BOXES": "int16", "MASKS": "int16"}},
        "calibration": {"method": "max"},
        "targets": ["ara240"],
        "compile": {"prefix": "model", "task": "bt-449c"},
        "inputs": {"*": {"scale": 1 / 255, "offset": 128}},
        "data": {"*": {"snapshot": "studio/calibration-ds-2bcd-0123456789abcdef.safetensors"}},
    }


def test_a_model_is_enough_and_int8_the_default():
    found = translate(document("model: m.onnx")).data
    assert found["model"] == {"path": "m.onnx", "split": "hints"}
    assert "data" not in found
    assert "quantization" not in found


@pytest.mark.parametrize("key", KEYS)
def test_every_key_changes_the_project_or_is_ignored_with_a_reason(key):
    name = key.partition(".")[2]
    changed = native(**{name: OTHERS[name]})
    if key not in IGNORED:
        assert changed != native()
        return
    assert changed == native()
    told = [note.what for note in notes(document(form(**{name: OTHERS[name]})))]
    assert f"`{name}` is ignored: {IGNORED[key]}" in told


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"int16_mode": "int16"}, "`int16_mode` cannot be `int16`.*:3:16.*allowed: int8, int16_s"),
        ({"int16_mod": "int8"}, "unknown key `int16_mod`.*:8:2.*did you mean `int16_mode`"),
        ({"model": None}, "Missing keys: 'model'"),
        ({"model": ["m.onnx"]}, "`model` must be a text"),
    ],
)
def test_a_mistake_is_shown_in_the_form(changes, message):
    with pytest.raises(ProjectError, match=message):
        native(**changes)
