"""hb_compile's YAML, translated: its defaults, its normalized samples, and quant_config."""

from __future__ import annotations

from typing import Any

import pytest

from dialect_cases import HB_COMPILE, changed, document
from npumake.dialects.horizon.dialect import notes, translate
from npumake.dialects.horizon.keys import IGNORED, KEYS
from npumake.digest import Json
from npumake.errors import ProjectError
from vendor_values import HB_COMPILE as OTHER


def native(**changes: Any) -> Json:
    return translate(document(changed(HB_COMPILE, changes))).data


def error(**changes: Any) -> str:
    with pytest.raises(ProjectError) as caught:
        native(**changes)
    assert caught.value.where is not None
    return str(caught.value)


def test_an_example_becomes_a_native_project():
    assert translate(document(HB_COMPILE), "vendor").data == {
        "model": {
            "path": "vendor/resnet50.onnx",
            "outputs": ["prob"],
        },
        "targets": ["nash-e"],
        "compile": {
            "remove_types": ["Quantize", "Dequantize"],
            "remove_nodes": ["fc"],
            "prefix": "resnet50_224x224_nv12",
            "optimize_level": "O2",
            "jobs": 32,
            "debug": True,
        },
        "inputs": {
            "image": {
                "type": "rgb",
                "fed_type": "nv12",
                "layout": "NCHW",
                "offset": 128,
                "shape": [1, 3, 224, 224],
                "mean": [123.675, 116.28, 103.53],
                "scale": [0.01712, 0.0175, 0.01743],
                "batch": 1,
            }
        },
        "data": {
            "image": {
                "files": "vendor/calibration_data/*.npy",
                "allow": ["few"],
                "normalized": True,
            }
        },
        "calibration": {"method": "max_percentile", "percentile": 0.9999},
    }


def test_the_model_and_its_march_are_enough():
    text = "model_parameters: {onnx_model: m.onnx, march: nash-m}"
    assert translate(document(text)).data == {
        "model": {"path": "m.onnx"},
        "targets": ["nash-m"],
        "compile": {"prefix": "model", "optimize_level": "O2", "jobs": 16, "debug": True},
        "inputs": {"*": {"type": "featuremap", "fed_type": "featuremap"}},
        "data": {"*": {"random": 8}},
        "calibration": {"method": "skip"},
    }


NO_NORM = {"mean_value": None, "scale_value": None}


def test_every_key_of_the_tables_is_perturbed_below():
    assert list(OTHER) == list(KEYS)


@pytest.mark.parametrize("key", OTHER)
def test_a_key_changes_the_project_or_says_why_not(key: str):
    value, beside = OTHER[key]
    name = key.partition(".")[2]
    same = {**beside, name: "m.other"} if key.endswith(("prototxt", "caffe_model")) else beside
    if name == "balance_factor":
        same = {**beside, name: 1}  # hb_compile refuses `balance` without it
    unperturbed, perturbed = native(**same), native(**{**beside, name: value})
    assert (perturbed == unperturbed) == (key in IGNORED)


def test_the_samples_are_normalized_where_there_is_something_to_normalise_by():
    assert "normalized" not in native(**NO_NORM)["data"]["image"]
    assert native(scale_value=None)["data"]["image"]["normalized"] is True


def test_a_standard_deviation_is_a_scale_inverted():
    found = native(scale_value=None, std_value="50 100 200")
    assert found["inputs"]["image"]["scale"] == [0.02, 0.01, 0.005]


def test_no_folder_means_skip_and_is_told():
    assert native(cal_data_dir=None)["data"] == {"image": {"random": 8}}
    assert native(cal_data_dir=None)["calibration"] == {"method": "skip"}
    said = [note.what for note in notes(document(changed(HB_COMPILE, {"cal_data_dir": None})))]
    assert any("calibrated on noise" in what for what in said)


def test_calibration_parameters_lets_unknown_keys_pass_and_no_other_group_does():
    text = HB_COMPILE.replace("  per_channel: false", "  anything: 1")
    assert translate(document(text)).data == native()
    assert "unknown key `anything`" in error(anything=1)


PLACED: dict[str, tuple[dict[str, Any], Json]] = {
    "node_info as a text": (
        {"node_info": "a:int16; /m/b:int8"},
        {"types": [{"a": "int16"}, {"/m/b": "int8"}], "optional": ["a", "/m/b"]},
    ),
    "node_info beats the lists": (
        {"node_info": {"a": {"ON": "CPU", "InputType0": "int16"}}, "run_on_bpu": "a;b"},
        {
            "layers": {"a": {"inputs": ["int16"]}},
            "cpu": ["a"],
            "npu": ["b"],
            "optional": ["a", "b"],
        },
    ),
    "outputs": ({"optimization": ["set_model_output_int8"]}, {"outputs": "int8"}),
}


@pytest.mark.parametrize("name", PLACED)
def test_what_is_asked_of_nodes_is_asked_of_them(name: str):
    changes, expected = PLACED[name]
    assert native(**changes)["quantization"] == expected


def test_operators_of_the_user_s_lie_in_their_folder():
    found = native(op_register_files="a.py;b.py", custom_op_dir="./ops")
    assert found["custom_operators"] == ["ops/a.py", "ops/b.py"]


def test_a_model_that_brings_its_scales_needs_no_folder():
    found = native(calibration_type="load", cal_data_dir=None)
    assert (found["calibration"], "data" in found) == ({"method": "load"}, False)


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "required": ({"march": None}, "Missing keys: 'march'"),
    "flag in quotes": ({"enable_vpu": "true"}, "`enable_vpu` must be True or False"),
    "no flag": ({"layer_out_dump": "maybe"}, "`layer_out_dump` must be True or False"),
    "layout": ({"input_layout_train": None}, "Missing keys: 'input_layout_train'"),
    "level": ({"optimize_level": "O3"}, "`optimize_level` cannot be `O3`"),
    "pair": ({"input_type_train": "gray"}, "a model trained on gray cannot be fed nv12"),
    "odd": ({"input_shape": "1x3x223x224"}, "nv12 does not support odd sizes"),
    "channels": ({"input_shape": "1x224x224x3"}, "224 channels in NCHW"),
    "rank": ({"input_shape": "3x224x224"}, "has four dimensions, not 3"),
    "scale and std": ({"std_value": "1"}, "both `scale_value` and `std_value`"),
    "std 0": ({"scale_value": None, "std_value": "0"}, "`std_value` cannot be 0"),
    "norm of a feature map": (
        {"input_type_train": "featuremap", "input_type_rt": "featuremap"},
        "`mean_value` for a feature map",
    ),
    "video": (
        {"input_type_rt": "bgr", "input_space_and_range": "bt601_video"},
        "`bt601_video` is for nv12",
    ),
    "separate": ({"separate_batch": True, "separate_name": "image"}, "both `separate_batch`"),
    "balance": ({"compile_mode": "balance"}, "needs `balance_factor`"),
    "cores": ({"core_num": 2}, "`core_num` must be 1..1, not 2"),
    "l2m": ({"max_l2m_size": 1024}, "nash-e does not support `max_l2m_size`"),
    "unknown march": ({"march": "nash-x"}, "`march` cannot be `nash-x`"),
    "folders": ({"cal_data_dir": "a;b"}, "wrong number of `cal_data_dir`: given 2"),
}


@pytest.mark.parametrize("name", WRONG)
def test_one_clear_error(name: str):
    changes, expected = WRONG[name]
    assert expected in error(**changes)
