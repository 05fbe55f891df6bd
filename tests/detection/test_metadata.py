"""EdgeFirst's metadata: what is acted on is typed, everything else is carried unchanged."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest

from detection.heads import hint
from npumake.detection.keys import ACTED_ON, CARRIED, KINDS
from npumake.detection.metadata import Metadata, Tiling, read_metadata, with_block, with_outputs
from npumake.detection.outputs import OutputGrid
from npumake.errors import ProjectError

BLOCK = {
    "version": "1.2.4",
    "timestamp": "2026-04-18T23:35:04+00:00",
    "task": "bt-449c",
    "splits_applied": ["quantization_split"],
    "calibration": "calibration-ds-1-0123456789abcdef.safetensors",
    "calibration_geometry": {"resize": "letterbox", "input_shape": [64, 64]},
}
GRID = {"scale": 0.5, "zero_point": -3, "dtype": "int8"}
BOXES: dict[str, Any] = {
    "name": "boxes",
    "type": "boxes",
    "decoder": "ultralytics",
    "encoding": "dfl",
    "normalized": True,
    "shape": [1, 4, 20],
    "dshape": [{"batch": 1}, {"box_coords": 4}, {"num_boxes": 20}],
    "outputs": [
        {
            "name": f"b{scale}",
            "type": "boxes",
            "stride": stride,
            "scale_index": scale,
            "shape": [1, side, side, 64],
            "dshape": [{"batch": 1}, {"height": side}, {"width": side}, {"num_features": 64}],
            "dtype": "int8",
            "quantization": GRID,
        }
        for scale, (stride, side) in enumerate([(8, 4), (16, 2)])
    ],
}
SCORES: dict[str, Any] = {
    "name": "scores",
    "type": "scores",
    "decoder": "ultralytics",
    "score_format": "per_class",
    "activation_required": "sigmoid",
    "shape": [1, 3, 20],
    "outputs": [
        child | {"name": f"s{n}", "type": "scores"} for n, child in enumerate(BOXES["outputs"])
    ],
}
FULL: dict[str, Any] = {
    "schema_version": 2,
    "host": {
        "studio_server": "test.edgefirst.studio",
        "project_id": "p-1",
        "session": "t-2110",
        "organization": "us",
        "username": "me",
    },
    "dataset": {"name": "shapes", "id": "ds-1", "classes": ["disc", "box", "star"]},
    "name": "net",
    "description": "a net",
    "author": "us",
    "input": {
        "shape": [1, 3, 64, 64],
        "dshape": [{"batch": 1}, {"num_features": 3}, {"height": 64}, {"width": 64}],
        "cameraadaptor": "rgb",
        "input_channels": 3,
        "output_channels": 3,
    },
    "model": {
        "name": "net-t-2110",
        "version": "8.4.9+edgefirst-1.7.0",
        "task": "segmentation",
        "backbone": "yolov8",
        "size": "nano",
        "activation": "silu",
        "detection": False,
        "segmentation": True,
        "classification": False,
        "anchors": [[1, 2]],
        "end2end": False,
    },
    "trainer": {"epochs": 3},
    "optimizer": {"optimizer": "adam"},
    "augmentation": {"random_hflip": 50},
    "validation": {
        "iou": 0.7,
        "score": 0.001,
        "nms": "numpy",
        "normalization": "unsigned",
        "preprocessing": "letterbox",
        "skip_validation_steps": 1,
    },
    "export": {"export": True},
    "decoder_version": "yolov8",
    "nms": "class_agnostic",
    "calibration": "calibration-ds-1-0123456789abcdef.safetensors",
    "tiling": {"version": 1, "mode": "tiled", "full_frame": {"enabled": False}, "tile": [64, 64]},
    "split_hints": [hint()],
    "outputs": [BOXES, SCORES],
    "compilation": {"target": "ara-2", "format": "dvm", "hw_metadata": {}, "ppa": {}},
    "tflite_quantizer": BLOCK
    | {
        "tensorflow_version": "2.21.0",
        "input_dtype": "uint8",
        "output_dtype": "int8",
        "calibration_samples": 500,
        "quantizer": "mlir",
    },
    "ara2": BLOCK | {"qmode": 9, "target": "ara-2", "int16_mode": "none", "ppa": {"ips": 225.4}},
    "hailo": BLOCK,
    "neutron": BLOCK,
    "of_tomorrow": {"a": [1, {"b": None}]},
}
# Another value of the same kind.
OTHERS: dict[str, Any] = {
    "input.cameraadaptor": "bgr",
    "validation.nms": "hal",
    "model": {"end2end": True},
    "nms": "class_aware",
    "split_hints": [],
    "outputs": [],
}


def read(document: Any) -> Metadata:
    return read_metadata(json.dumps(document), "e.json")


def with_(route: str, value: Any) -> dict[str, Any]:
    """FULL with another value at a dotted route."""
    data: Any = json.loads(json.dumps(FULL))
    inside = data
    *groups, last = [int(step) if step.isdigit() else step for step in route.split(".")]
    for group in groups:
        inside = inside[group]
    inside[last] = value
    return data  # type: ignore[no-any-return]


def at(route: str) -> Any:
    value: Any = FULL
    for step in route.split("."):
        value = value[int(step) if step.isdigit() else step]
    return value


def other(value: Any) -> Any:
    """Another value of its kind."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, dict):
        return {}
    return [*value, value[-1]] if isinstance(value, list) else value + "x"


def acted_on(metadata: Metadata) -> tuple[Any, ...]:
    """What is done differently: everything but the document."""
    return tuple(value for name, value in vars(metadata).items() if name != "document")


def error(document: Any) -> str:
    with pytest.raises(ProjectError) as caught:
        read(document)
    assert caught.value.hint
    return str(caught.value)


def test_the_document_is_carried_as_it_came():
    assert json.loads(read(FULL).to_json()) == FULL


@pytest.mark.parametrize("key", [key for key in KINDS if key != "schema_version"])
def test_every_key_changes_what_is_done_or_is_carried_for_a_reason(key):
    changed = with_(key, OTHERS.get(key, other(at(key))))
    found = read(changed)
    assert (acted_on(found) != acted_on(read(FULL))) == (key not in CARRIED)
    assert bool(CARRIED.get(key)) == (key not in ACTED_ON)
    assert found.document == changed


@pytest.mark.parametrize("key", KINDS)
def test_a_value_of_another_kind_is_one_error_that_names_the_key(key):
    wrong = "x" if isinstance(at(key), int | float) else 1.5
    assert f"`{key.rpartition('.')[2]}` must be " in error(with_(key, wrong))


HINT = "split_hints.0"
HINTS = {
    "type": "unknown",
    "target": "output9",
    "strides": [8, 16],
    "anchors_per_cell": 3,
    "boundaries": [{"name": "boxes", "channels": [0, 4]}],
    "boundaries.0.name": "b",
    "boundaries.2.channels": [7, 12],
    "boundaries.1.activation": "softmax",
}


@pytest.mark.parametrize("key", HINTS)
def test_every_key_of_a_hint_changes_it(key):
    assert read(with_(f"{HINT}.{key}", HINTS[key])).hints != read(FULL).hints


@pytest.mark.parametrize("key", ["input_dtype", "output_dtype", "description"])
def test_what_a_hint_says_to_people_is_carried(key):
    """The target's own grid decides the types; a description is read by nobody."""
    found = read(with_(f"{HINT}.{key}", "other"))
    assert found.hints == read(FULL).hints
    assert found.document["split_hints"][0][key] == "other"


def test_a_hint_of_an_unknown_type_is_skipped():
    found = read(with_("split_hints", [{"type": "later", "boundaries": 7}, hint()]))
    assert [told.target for told in found.hints] == ["output0"]


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("target", None, "`target` is missing"),
        ("strides", [16, 8], "`strides` must ascend"),
        ("strides", [0, 8], "`strides` must ascend"),
        ("anchors_per_cell", 0, "`anchors_per_cell` must be 1 or more"),
        ("boundaries", [], "no `boundaries`"),
        ("boundaries.1.channels", [3, 7], "gaps or overlap"),
        ("boundaries.1.channels", [5, 7], "gaps or overlap"),
        ("boundaries.1.channels", [4, 4], "gaps or overlap"),
        ("boundaries.1.channels", [4], r"must be [start, end)"),
        ("boundaries.1.activation", "relu", "`activation` must be one of"),
    ],
)
def test_a_wrong_hint_is_one_error_that_names_it(key, value, message):
    assert message in error(with_(f"{HINT}.{key}", value))


OUTPUTS = {
    "0.name": "b",
    "0.type": "other",
    "0.shape": [1, 4, 21],
    "0.dshape": [{"batch": 1}, {"num_features": 4}, {"num_boxes": 20}],
    "0.decoder": "modelpack",
    "0.encoding": "direct",
    "0.normalized": False,
    "0.anchors": [[1, 2]],
    "1.score_format": "obj_x_class",
    "1.activation_required": "softmax",
    "1.activation_applied": "tanh",
    "0.outputs.0.stride": [8, 9],
    "0.outputs.0.scale_index": 4,
    "0.outputs.0.dtype": "uint8",
    "0.outputs.0.quantization": None,
    "0.outputs.0.quantization.scale": 0.25,
    "0.outputs.0.quantization.zero_point": 0,
    "0.outputs.0.quantization.dtype": "uint8",
    "0.outputs.0.quantization.axis": 3,
    "0.of_tomorrow": 1,
}


@pytest.mark.parametrize("key", OUTPUTS)
def test_every_key_of_an_output_changes_it(key):
    data = with_(f"outputs.{key}", OUTPUTS[key])
    if key == "0.shape":
        del data["outputs"][0]["dshape"]
    if key == "0.outputs.0.stride":
        data["outputs"][1]["outputs"][0]["stride"] = OUTPUTS[key]
    assert read(data).outputs != read(FULL).outputs


def test_outputs_are_written_as_they_were_read():
    made = with_outputs(read(FULL), read(FULL).outputs)
    assert made.document == {key: FULL[key] for key in FULL if key != "split_hints"}


CHILD = "0.outputs.0"


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("0.encoding", None, "boxes without an `encoding`"),
        ("0.encoding", "polar", "`encoding` must be one of dfl, direct, ltrb, anchor"),
        ("0.outputs", [], "`encoding: dfl` of boxes that are one flat tensor"),
        ("0.shape", [1, 4, 21], "`dshape` has other sizes than `shape`"),
        ("0.shape", [1, -4, 20], "`shape` must be a list of sizes"),
        ("0.dshape", [{"batch": 1, "box_coords": 4}], "has one name"),
        ("0.dshape.2", {"boxes": 20}, "`dshape` names no dimensions"),
        ("0.quantization", GRID, "a grid of its own beside children"),
        (f"{CHILD}.outputs", [{"name": "x"}], "children of children"),
        (f"{CHILD}.stride", None, "children with a stride beside children without"),
        (f"{CHILD}.stride", 4, "boxes and scores have other strides"),
        (f"{CHILD}.quantization.dtype", None, "the grid of a child needs its `dtype`"),
        (f"{CHILD}.quantization.scale", [1, 2], "a grid per channel needs its `axis`"),
        (f"{CHILD}.quantization.scale", [], "a grid without a scale"),
        (f"{CHILD}.quantization.scale", None, "`scale` is missing"),
    ],
)
def test_outputs_that_no_decoder_takes_are_one_error(key, value, message):
    assert message in error(with_(f"outputs.{key}", value))


@pytest.mark.parametrize(("bins", "fits"), [(1, True), (64, True), (65, False)])
def test_a_dfl_box_has_at_most_64_bins_a_side(bins, fits):
    data = with_(f"outputs.{CHILD}.dshape.3", {"num_features": 4 * bins})
    data["outputs"][0]["outputs"][0]["shape"][3] = 4 * bins
    assert fits == ("of 4 sides" not in (error(data) if not fits else ""))
    data["outputs"][0]["outputs"][0]["shape"][3] = 4 * bins + 1
    data["outputs"][0]["outputs"][0]["dshape"][3] = {"num_features": 4 * bins + 1}
    assert "channels are not a DFL box of 4 sides" in error(data)


def test_a_grid_per_channel_has_a_value_per_index_of_its_axis():
    grid = {"scale": [0.5] * 64, "zero_point": [0] * 64, "axis": 3, "dtype": "int8"}
    found = read(with_(f"outputs.{CHILD}.quantization", grid)).outputs[0].outputs[0]
    assert found.quantization == OutputGrid((0.5,) * 64, (0,) * 64, 3, "int8")
    grid["scale"] = [0.5] * 63
    assert "needs 64 values" in error(with_(f"outputs.{CHILD}.quantization", grid))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "`tiling` must be an object"),
        ([], "`tiling` must be an object"),
        ({"version": 2, "mode": "tiled"}, "only version 1"),
        ({"version": 1.0, "mode": "tiled"}, "`version` must be a whole number"),
        ({"version": True, "mode": "tiled"}, "`version` must be a whole number"),
        ({"version": 1}, "`mode` is missing"),
        ({"version": 1, "mode": "striped"}, "`mode` must be one of tiled, whole_frame"),
    ],
)
def test_a_tiling_that_is_not_known_is_refused(value, message):
    assert message in error(with_("tiling", value))


def test_a_tiling_is_read():
    assert read(FULL).tiling == Tiling("tiled")
    assert read(with_("tiling.full_frame.enabled", True)).tiling == Tiling("tiled", True)
    assert read({"schema_version": 2}).tiling is None


def test_a_newer_schema_is_refused():
    assert "schema version 3; the newest known is 2" in error({"schema_version": 3})
    assert read({"schema_version": 2}).nms == "class_agnostic"


def test_a_converter_adds_its_block_and_nothing_else():
    document = {key: value for key, value in FULL.items() if key != "ara2"}
    found = with_block(read(document), "ara2", BLOCK)
    assert found.document == document | {"ara2": BLOCK}
    with pytest.raises(ProjectError, match="has a block `ara2` already"):
        with_block(found, "ara2", BLOCK)


OLD = {
    "host": {"username": "me"},
    "input": {"size": "640x480", "color_adaptor": "rgba"},
    "model": {"model_task": "detection", "model_size": "nano"},
    "validation": {"validation_iou": 0.7, "validation_threshold": 0.01},
    "outputs": [
        {"name": "b", "type": "boxes", "shape": [1, 9, 4], "quantization": [0.5, 7], "index": 3},
        {"name": "s", "type": "scores", "shape": [1, 9, 2], "dshape": {"batch": 1, "num_boxes": 9,
         "num_classes": 2}},
    ],
}  # fmt: skip


def test_schema_1_is_brought_to_2():
    found = read(OLD)
    assert found.document["schema_version"] == 2
    assert found.input_shape == (1, 4, 480, 640)
    assert found.document["input"]["cameraadaptor"] == "rgba"
    assert found.document["model"] == {"task": "detection", "size": "nano"}
    assert found.document["validation"] == {"iou": 0.7, "score": 0.01}
    assert (found.nms, found.document["host"]) == ("class_agnostic", {"username": "me"})
    boxes, scores = found.outputs
    assert (boxes.encoding, boxes.quantization) == ("direct", OutputGrid((0.5,), (7,)))
    assert boxes.rest == {"index": 3}
    assert (scores.score_format, scores.dshape[1]) == ("per_class", ("num_boxes", 9))
    assert read(OLD | {"schema_version": 1}).document == found.document


@pytest.mark.parametrize("size", ["640", "0x640", "640X480", "640x480x3", "99999999x1"])
def test_an_old_size_that_is_none_is_refused(size):
    assert "is not WIDTHxHEIGHT" in error({"input": {"size": size}})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not readable JSON"),
        ("[1]", "the JSON must be an object"),
        ('{"a": 1, "a": 2}', "a key is written twice"),
        ('{"a": NaN}', "NaN is not a number"),
        ("[" * 100_000, "not readable JSON"),
        ('{"a": ' + "1" * 5000 + "}", "not readable JSON"),
        (b"\xff\xfe{", "not readable JSON"),
        (b" " * (1 << 24) + b"{}", "more than 16777216 bytes"),
    ],
)
def test_what_is_no_json_is_one_error(text, message):
    with pytest.raises(ProjectError, match=message) as caught:
        read_metadata(text, "e.json")
    assert caught.value.hint


STRANGE: tuple[Any, ...] = (
    *(None, True, -1, 0, 10**18, 1e300, "", "x" * 999, [], [1], ["a", {"b": 1}], [[1]]),
    *({}, {"a": 1}, {"a": {"b": [1]}}, [0, 4], [4, 0], [{"batch": 1}], [None], [10**30]),
)


def routes(value: Any, route: str = "") -> list[str]:
    """Every dotted route below a value."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    found = []
    for key, item in pairs:
        found.append(f"{route}{key}")
        if isinstance(item, dict | list):
            found += routes(item, f"{route}{key}.")
    return found


@pytest.mark.parametrize("strange", STRANGE, ids=lambda value: json.dumps(value)[:20])
def test_a_strange_value_anywhere_is_read_or_one_error(strange):
    for route in routes(FULL):
        document = with_(route, strange)
        with suppress(ProjectError):
            assert read(document).document == document or document["schema_version"] != 2
        with suppress(ProjectError):
            read(document | {"schema_version": 1})
