"""A vendor's YAML written from a project is that project again, read back through its dialect."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import yaml

from npumake.data.formats import InputSpec
from npumake.data.input_samples import ModelInput
from npumake.dialects.handover import ClosedTool, HandoverRequest
from npumake.dialects.table import DIALECTS
from npumake.dialects.tools import TOOLS
from npumake.digest import Json, plain
from npumake.errors import ProjectError
from npumake.project.document import parse_document
from npumake.project.feeding import feeding
from npumake.project.reader import sections_of
from npumake.project.scalar import older_meaning
from npumake.project.sections import Input
from npumake.project.vendor import Dialect
from npumake.targets.reader import read_target

SHAPE = (1, 3, 224, 224)
MODEL = {"path": "model.onnx"}


def asked(chip: str, own: Json, shapes: dict[str, tuple[int, ...]]) -> HandoverRequest:
    text = yaml.safe_dump({"model": MODEL, "targets": [chip], **own})
    sections = sections_of(parse_document(text.encode(), "project.yaml", older_meaning))
    inputs = {}
    for name, shape in shapes.items():
        said = sections.inputs.get(name, Input())
        form = feeding(name, said, shape)
        inputs[name] = ModelInput(name, said, form, InputSpec(shape, "float32", form.offset))
    folders = {name: f"{index}_{name}" for index, name in enumerate(shapes)}
    return HandoverRequest(sections, read_target(chip), inputs, "net", "model.onnx", None, folders)


def tool_of(chip: str) -> tuple[ClosedTool, Dialect]:
    tool = TOOLS[read_target(chip).vendor]
    return tool, DIALECTS[tool.dialect]()


def read_back(chip: str, document: Json) -> Json:
    tool, dialect = tool_of(chip)
    text = yaml.safe_dump(document, sort_keys=False)
    written = parse_document(text.encode(), tool.config, older_meaning)
    return dialect.translate(written, "", {"model": MODEL, "targets": [chip]}).data


HORIZON = ("rdk-x5", "nash-e")
IMAGENET = {"mean": [123.675, 116.28, 103.53], "scale": [0.01712, 0.0175, 0.01743]}
INPUTS: dict[str, tuple[tuple[str, ...], Json, tuple[int, ...]]] = {
    "rgb fed nv12": (
        HORIZON,
        {"type": "rgb", "fed_type": "nv12", "offset": 128, **IMAGENET},
        SHAPE,
    ),
    "bgr fed as video": (
        HORIZON,
        {"type": "bgr", "fed_type": "nv12", "color_range": "video", "offset": 128},
        SHAPE,
    ),
    "bgr with one mean": (HORIZON, {"type": "bgr", "fed_type": "bgr", "mean": 128.0}, SHAPE),
    "gray": (HORIZON, {"type": "gray", "fed_type": "gray", "scale": 0.0039}, (1, 1, 28, 28)),
    "numbers": (HORIZON, {"type": "featuremap", "fed_type": "featuremap"}, (1, 3, 4, 4)),
    "a batch": (HORIZON, {"type": "rgb", "fed_type": "rgb", "batch": 4, "mean": 1.0}, SHAPE),
    "channels last": (
        HORIZON,
        {"type": "rgb", "fed_type": "rgb", "layout": "NHWC", "scale": 0.5},
        (1, 224, 224, 3),
    ),
    "of SyNAP": (("sl1680",), {"mean": [1.0, 2.0, 3.0], "scale": 0.5}, SHAPE),
    "planes of SyNAP": (
        ("sl1680",),
        {"type": "rgb", "scale": 0.25, "preprocess": {"type": "nv21", "crop": True}},
        SHAPE,
    ),
}


@pytest.mark.parametrize(
    ("chip", "name"), [(chip, name) for name, row in INPUTS.items() for chip in row[0]]
)
def test_an_input_comes_back_as_it_was(chip: str, name: str):
    _, said, shape = INPUTS[name]
    given = asked(chip, {"inputs": {"image": said}}, {"image": shape})
    found = read_back(chip, tool_of(chip)[0].render(given).document)
    back = sections_of(
        parse_document(
            yaml.safe_dump({**found, "model": MODEL, "targets": [chip]}).encode(),
            "p",
            older_meaning,
        )
    )
    form = feeding("image", back.inputs["image"], shape)
    if chip == "nash-e":  # which has one layout for each type
        form = replace(form, planes=given.inputs["image"].form.planes)
    assert form == given.inputs["image"].form
    was, now = given.inputs["image"].section, back.inputs["image"]
    for key in ("mean", "scale", "batch", "layout"):
        np.testing.assert_array_equal(
            np.broadcast_to(getattr(now, key), 3), np.broadcast_to(getattr(was, key), 3)
        )


SECTIONS: dict[str, tuple[str, Json, Json]] = {
    "max": ("rdk-x5", {"calibration": {"method": "max"}}, {}),
    "a percentile": (
        "nash-e",
        {"calibration": {"method": "max_percentile", "percentile": 0.9999}},
        {},
    ),
    "kl per channel": ("rdk-x5", {"calibration": {"method": "kl", "per_channel": True}}, {}),
    "nodes and outputs": (
        "rdk-x5",
        {"quantization": {"cpu": ["a", "b"], "outputs": "int16"}},
        {"calibration": {"method": "kl"}},
    ),
    "SyNAP's moving average": ("vs640", {"calibration": {"method": "moving_average"}}, {}),
    "SyNAP's mixture": (
        "sl1680",
        {"quantization": {"types": [{"*": "uint8"}, {"conv": "int16"}], "cpu": ["y...", "x"],
                          "scheme": "asymmetric_affine"}},
        {"calibration": {"method": "kl"}},
    ),
    "SyNAP's policies": ("sl1680", {"security": {"inputs": {"@0": "secure"}}}, {}),
    "the ends of the model": (
        "rdk-x5",
        {"model": {**MODEL, "outputs": ["a", "b"]},
         "compile": {"remove_types": ["Cast"], "remove_nodes": ["t"]}},
        {},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SECTIONS)
def test_a_section_comes_back_as_it_was(name: str):
    chip, own, more = SECTIONS[name]
    given = asked(chip, own, {"x": (1, 1, 8, 8)})
    back = read_back(chip, tool_of(chip)[0].render(given).document)
    for section, keys in {**own, **more}.items():
        for key, value in keys.items():
            assert back[section][key] == value, (section, key, back)


def test_several_inputs_are_lists_in_the_order_of_the_model():
    own = {"inputs": {"b": {"type": "bgr", "mean": 3.0}, "a": {"type": "gray"}}}
    given = asked("rdk-x5", own, {"b": SHAPE, "a": (1, 1, 8, 8)})
    found = tool_of("rdk-x5")[0].render(given).document["input_parameters"]
    assert found["input_name"] == "b;a"
    assert found["norm_type"] == "data_mean;no_preprocess"
    assert found["mean_value"] == "3.0;None"
    assert found["input_shape"] == "1x3x224x224;1x1x8x8"


WRONG: dict[str, tuple[str, Json, tuple[int, ...], str]] = {
    "planes": ("rdk-x5", {"preprocess": {"type": "nv12"}, "type": "rgb"}, SHAPE, "in planes"),
    "8-bit numbers": ("nash-e", {"offset": 128}, (1, 64), "8-bit values that are not a picture"),
    "a picture from 0": ("rdk-x5", {"type": "rgb", "offset": 0}, SHAPE, "without an offset"),
    "a mean of numbers": ("nash-e", {"mean": 1.0}, (1, 64), "`mean` of a feature map"),
    "a scale per channel": ("sl1680", IMAGENET, SHAPE, "a scale per channel"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_a_tool_cannot_be_told_is_an_error_in_the_yaml(name: str):
    chip, said, shape, words = WRONG[name]
    given = asked(chip, {"inputs": {"x": said}}, {"x": shape})
    with pytest.raises(ProjectError, match=words) as caught:
        tool_of(chip)[0].render(given)
    assert str(caught.value.where).startswith("inputs.x.")


def test_what_has_no_word_is_told():
    own: dict[str, Any] = {
        "calibration": {"method": "mse"},
        "quantization": {"cpu": ["Add(*)"], "types": {"x": "int16"}, "equalize": True},
    }
    told = tool_of("rdk-x5")[0].render(asked("rdk-x5", own, {"x": (1, 4)})).omissions
    assert told == (
        "calibration.method: mse; the tool searches on its own",
        "the pattern `Add(*)`",
        "quantization.types",
        "quantization.equalize",
    )


def test_the_form_of_ara2_is_cut_and_smart_where_the_project_is():
    own = {"quantization": {"types": {"BOXES": "int16"}}, "inputs": {"x": {"scale": 1 / 255}}}
    document = tool_of("ara240")[0].render(asked("ara240", own, {"x": SHAPE})).document
    assert plain(document) == {"model": "model.onnx", "int16_mode": "int16_smart"}
    types = {"BOXES": "int16", "MASKS": "int16"}
    assert read_back("ara240", document)["quantization"] == {"types": types}


LISTED: dict[str, tuple[str, Json, tuple[str, ...]]] = {
    "a method SyNAP lacks": (
        "sl1680",
        {"calibration": {"method": "mse"}},
        ("calibration.method: mse; the tool takes `auto`",),
    ),
    "its own search, changed": (
        "sl1680",
        {"calibration": {"method": "modelwise"}},
        ("calibration.method: modelwise; the tool takes `auto`",),
    ),
    "another average": (
        "sl1680",
        {"calibration": {"method": "moving_average", "momentum": 0.5, "symmetric": True}},
        ("calibration.symmetric: True", "calibration.momentum: 0.5"),
    ),
    "bins": ("rdk-x5", {"calibration": {"bins": 512}}, ("calibration.bins: 512",)),
    "zero points": (
        "rdk-x5",
        {"calibration": {"method": "max", "symmetric": False}},
        ("calibration.symmetric: false",),
    ),
    "another search": (
        "rdk-x5",
        {"calibration": {"method": "modelwise", "modelwise": {"similarity": 0.9}}},
        ("calibration.modelwise; the tool searches on its own",),
    ),
    "our search": (
        "nash-e",
        {"calibration": {"method": "max", "recipe": "best"}},
        ("calibration.recipe: best; the tool searches on its own",),
    ),
    "a method of Studio": (
        "ara240",
        {"calibration": {"method": "kl"}, "inputs": {"x": {"scale": 1 / 255}}},
        (
            "data: no pixels of 0..255 that a snapshot could hold; Studio takes one of its own",
            "calibration.method: kl; the converter finds the ranges by itself",
        ),
    ),
}


@pytest.mark.parametrize("name", LISTED)
def test_what_a_calibration_says_and_no_key_does_is_listed(name: str):
    chip, own, expected = LISTED[name]
    whole = asked(chip, own, {"x": SHAPE})
    found = tool_of(chip)[0].render(whole).omissions
    usual = tool_of(chip)[0].render(asked(chip, {"inputs": own.get("inputs", {})}, {"x": SHAPE}))
    assert tuple(what for what in found if what in expected) == expected
    assert set(found) - set(expected) <= set(usual.omissions)
