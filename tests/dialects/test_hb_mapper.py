"""hb_mapper's YAML, translated: plain data in, plain data out, every error in the vendor's file."""

from __future__ import annotations

import re
from typing import Any

import pytest

from dialect_cases import HB_MAPPER, changed, document
from npumake.dialects.drobotics.dialect import notes, translate
from npumake.dialects.drobotics.keys import IGNORED, KEYS
from npumake.digest import Json
from npumake.errors import ProjectError
from vendor_values import HB_MAPPER as OTHER


def native(**changes: Any) -> Json:
    return translate(document(changed(HB_MAPPER, changes))).data


def error(**changes: Any) -> str:
    with pytest.raises(ProjectError) as caught:
        native(**changes)
    assert caught.value.where is not None
    return str(caught.value)


def test_the_guide_s_template_becomes_a_native_project():
    assert translate(document(HB_MAPPER), "vendor").data == {
        "model": {
            "path": "vendor/mobilenetv1.onnx",
            "outputs": ["prob"],
        },
        "targets": ["rdk-x5"],
        "compile": {
            "remove_types": ["Dequantize", "Transpose"],
            "remove_nodes": ["fc7"],
            "prefix": "mobilenetv1",
            "max_time_per_fc": 1000,
            "input_source": {"data": "ddr"},
            "jobs": 8,
        },
        "inputs": {
            "data": {
                "type": "bgr",
                "layout": "NCHW",
                "fed_type": "yuv444",
                "fed_layout": "NHWC",
                "offset": 128,
                "shape": [1, 3, 224, 224],
                "mean": [103.94, 116.78, 123.68],
                "scale": 0.017,
                "batch": 1,
            }
        },
        "data": {
            "data": {
                "files": "vendor/calibration_data/*",
                "allow": ["few"],
                "dtype": "float32",
            }
        },
        "calibration": {"method": "max_percentile", "percentile": 0.9999},
    }


def test_every_key_of_the_tables_is_perturbed_below():
    assert list(OTHER) == list(KEYS)


@pytest.mark.parametrize("key", OTHER)
def test_a_key_changes_the_project_or_says_why_not(key: str):
    value, beside = OTHER[key]
    name = key.partition(".")[2]
    same = {**beside, name: "m.other"} if key.endswith(("prototxt", "caffe_model")) else beside
    unperturbed, perturbed = native(**same), native(**{**beside, name: value})
    assert (perturbed == unperturbed) == (key in IGNORED)


def test_an_ignored_key_that_asks_for_something_is_told_with_its_line():
    said = {note.what.split("`")[1]: note for note in notes(document(HB_MAPPER))}
    assert set(said) == {"working_dir"}
    assert said["working_dir"].where.line == 7


@pytest.mark.parametrize(
    ("kind", "share", "expected"),
    [
        ("kl", 0.9999, {"method": "kl"}),
        ("max", 1.0, {"method": "max"}),
        ("max", None, {"method": "max"}),
        ("max", 0.99995, {"method": "max_percentile", "percentile": 0.99995}),
        ("default", None, {"method": "modelwise"}),
        (None, None, {"method": "modelwise"}),
        ("mix", 0.9999, {"method": "mix"}),
        ("load", None, {"method": "load"}),
    ],
)
def test_max_percentile_speaks_to_max_only(kind, share, expected):
    assert native(calibration_type=kind, max_percentile=share)["calibration"] == expected


def test_skip_calibrates_on_noise_without_a_folder():
    found = native(calibration_type="skip", cal_data_dir=None)
    assert (found["data"], found["calibration"]) == ({"data": {"random": 8}}, {"method": "skip"})


def test_a_qat_model_needs_no_folder():
    assert "data" not in native(calibration_type="load", cal_data_dir=None)


@pytest.mark.parametrize("key", ["node_info", "set_node_data_type"])
def test_the_x3_has_units_of_nodes_and_a_note_for_their_int16(key):
    value = {"a": {"ON": "CPU", "InputType": "int16"}} if key == "node_info" else "a:int16"
    changes = {"march": "bernoulli2", key: value}
    found = native(**changes)["quantization"]
    units = {"cpu": ["a"]} if key == "node_info" else {}
    assert found == {**units, "optional": ["a"]}
    texts = [note.what for note in notes(document(changed(HB_MAPPER, changes)))]
    assert f"int16 of `{key}` is ignored: RDK X3 has none" in texts


NODE_INFO = {
    "/model.0/conv/Conv": {"ON": "BPU", "InputType": "int16", "OutputType": "int16"},
    "cat": {"InputType1": "int16"},
    "tail": {"ON": "CPU"},
}
PLACED: dict[str, tuple[dict[str, Any], Json]] = {
    "node_info": (
        {"node_info": NODE_INFO},
        {
            "layers": {
                "/model.0/conv/Conv": {"input": "int16", "output": "int16"},
                "cat": {"inputs": [None, "int16"]},
            },
            "npu": ["/model.0/conv/Conv"],
            "cpu": ["tail"],
            "optional": ["/model.0/conv/Conv", "cat", "tail"],
        },
    ),
    "units": (
        {"run_on_cpu": "a; b", "run_on_bpu": "c"},
        {"cpu": ["a", "b"], "npu": ["c"], "optional": ["a", "b", "c"]},
    ),
    "node_info beats them": (
        {"run_on_cpu": "a;b", "node_info": {"a": {"ON": "BPU"}}},
        {"npu": ["a"], "cpu": ["b"], "optional": ["a", "b"]},
    ),
    "several nodes in one name": (
        {"node_info": {"a;b ; c": {"ON": "CPU"}}},
        {"cpu": ["a", "b", "c"], "optional": ["a", "b", "c"]},
    ),
    "what a node makes": (
        {"set_node_data_type": "a:int16; n:0:int8"},
        {
            "layers": {"a": {"output": "int16"}, "n:0": {"output": "int8"}},
            "optional": ["a", "n:0"],
        },
    ),
    "outputs": ({"optimization": "set_model_output_int16"}, {"outputs": "int16"}),
    "an operator, in one item": (
        {"optimization": ["set_Softmax_input_int8,set_Softmax_output_int16"]},
        {
            "layers": {"Softmax(*)": {"input": "int8", "output": "int16"}},
            "optional": ["Softmax(*)"],
        },
    ),
    "words": (
        {"optimization": "set_all_nodes_int16, run_fast; set_model_output_int8"},
        {"types": [{"*": "int16"}], "npu": ["*"], "outputs": "int8"},
    ),
}


@pytest.mark.parametrize("name", PLACED)
def test_what_is_asked_of_nodes_is_asked_of_them(name: str):
    changes, expected = PLACED[name]
    assert native(**changes)["quantization"] == expected


def test_operators_of_the_user_s_lie_in_their_folder():
    found = native(op_register_files="a.py; [b].py", custom_op_dir="./ops")
    assert found["custom_operators"] == ["ops/a.py", "ops/[[]b].py"]
    assert native(op_register_files="a.py")["custom_operators"] == ["a.py"]


@pytest.mark.parametrize(
    ("folder", "kind", "expected"),
    [
        ("./cal_rgb_f32", None, "float32"),
        ("./cal_rgb_f32/", None, "float32"),
        ("./cal_rgb", None, "uint8"),
        ("./cal_rgb_f32", "uint8", "uint8"),
    ],
)
def test_the_type_of_the_files_is_that_of_the_key_else_of_the_folder(folder, kind, expected):
    assert native(cal_data_dir=folder, cal_data_type=kind)["data"]["data"]["dtype"] == expected


def test_pictures_are_resized_by_skimage_and_taken_to_the_model_s_layout():
    found = native(preprocess_on=True, input_type_train="rgb")["data"]["data"]
    assert found["channels"] == "rgb"
    assert found["transforms"] == [{"resize": {"mode": "skimage"}}, {"hwc2chw": {}}]
    assert "dtype" not in found


def test_inputs_keep_the_order_of_their_names_and_none_is_no_step():
    found = native(
        input_name="left; right",
        input_type_train="rgb; featuremap",
        input_type_rt="nv12; featuremap",
        input_layout_train="NCHW; NHWC",
        input_layout_rt=None,
        input_shape="1x3x64x64; 1x8x8x4",
        norm_type="data_mean_and_scale; data_scale",
        mean_value="128; None",
        scale_value="0.5; 2 3 4 5;",
        cal_data_dir="a;b",
        cal_data_type=None,
        input_source=None,
    )
    assert found["inputs"] == {
        "left": {
            "type": "rgb",
            "layout": "NCHW",
            "fed_type": "nv12",
            "offset": 128,
            "shape": [1, 3, 64, 64],
            "mean": 128.0,
            "scale": 0.5,
            "batch": 1,
        },
        "right": {
            "type": "featuremap",
            "layout": "NHWC",
            "fed_type": "featuremap",
            "shape": [1, 8, 8, 4],
            "scale": [2.0, 3.0, 4.0, 5.0],
            "batch": 1,
        },
    }
    assert found["data"] == {
        "left": {"files": "a/*", "allow": ["few"], "dtype": "uint8"},
        "right": {"files": "b/*", "allow": ["few"], "dtype": "uint8"},
    }


def test_the_one_input_of_a_model_needs_no_name():
    assert list(native(input_name=None)["inputs"]) == ["*"]


@pytest.mark.parametrize(
    ("march", "target"), [("bernoulli2", "rdk-x3"), ("bayes-e", "rdk-x5"), ("bayes", "rdk-ultra")]
)
def test_a_march_is_a_target(march, target):
    assert native(march=march)["targets"] == [target]


LEGAL = {
    "yuv444": "nv12 yuv444",
    "rgb": "nv12 yuv444 rgb bgr",
    "bgr": "nv12 yuv444 rgb bgr",
    "gray": "gray",
    "featuremap": "featuremap",
}


@pytest.mark.parametrize("trained", LEGAL)
@pytest.mark.parametrize("fed", ["nv12", "yuv444", "rgb", "bgr", "gray", "featuremap"])
def test_the_type_table_of_the_guide(trained, fed):
    pair = {"input_type_train": trained, "input_type_rt": fed, "input_layout_rt": None}
    if fed in LEGAL[trained].split():
        assert native(**pair)["inputs"]["data"]["fed_type"] == fed
    else:
        said = error(**pair)
        assert f"a model trained on {trained} cannot be fed {fed}" in said
        assert LEGAL[trained].replace(" ", ", ") in said


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "unknown key": ({"input_nmae": "data"}, "unknown key `input_nmae`"),
    "required key": ({"march": None}, "Missing keys: 'march'"),
    "required keys": (
        {"input_type_train": None, "input_layout_train": None},
        "Missing keys: 'input_type_train', 'input_layout_train'",
    ),
    "norm of a picture": ({"norm_type": None}, "Missing keys: 'norm_type'"),
    "no model": ({"onnx_model": None}, "Missing keys: 'onnx_model'"),
    "half a Caffe model": (
        {"onnx_model": None, "prototxt": "m.prototxt"},
        "Missing keys: 'caffe_model'",
    ),
    "two models": (
        {"caffe_model": "m.caffemodel", "prototxt": "m.prototxt"},
        "both a Caffe and an ONNX model",
    ),
    "mean asked for": ({"mean_value": None}, "Missing keys: 'mean_value'"),
    "no samples": ({"cal_data_dir": None}, "Missing keys: 'cal_data_dir'"),
    "unknown march": ({"march": "bayes_e"}, "`march` cannot be `bayes_e`"),
    "odd sides": ({"input_shape": "1x3x224x223"}, "a yuv444 picture of 224 x 223 has odd sides"),
    "X3's layouts": (
        {"march": "bernoulli2", "input_layout_rt": "NCHW"},
        "RDK X3 takes no yuv444 in NCHW",
    ),
    "X3's int16": (
        {"march": "bernoulli2", "optimization": "set_model_output_int16"},
        "RDK X3 has no int16",
    ),
    "one OutputType": (
        {"node_info": {"a": {"OutputType0": "int16"}}},
        "unknown key `OutputType0` of `a`",
    ),
    "any InputType": ({"node_info": {"a": {"InputType1": "int32"}}}, "`InputType1` cannot be"),
    "two cores on X5": ({"core_num": 2}, "`core_num: 2` is for RDK X3"),
    "function call": ({"max_time_per_fc": 999}, "must be 0 or 1000..4294967295, not 999"),
    "batch": ({"input_batch": 129}, "`input_batch` must be 1..128, not 129"),
    "batch of many": (
        {"input_batch": 2, "input_shape": "2x3x224x224"},
        "needs a first dimension of 1",
    ),
    "shape": ({"input_shape": "?x3x224x224"}, "`?x3x224x224` is not a shape"),
    "several without names": (
        {"input_name": None, "mean_value": "1;2"},
        "`mean_value` speaks of 2 inputs",
    ),
    "fewer than inputs": ({"input_name": "a;b"}, "wrong number of `input_type_train`: given 1"),
    "numbers": ({"mean_value": "103,94 x"}, "is not a list of numbers"),
    "percentile": ({"max_percentile": 99.99}, "`max_percentile` must be 0.5..1"),
    "node_info": ({"node_info": {"a": "int16"}}, "must be a mapping of nodes to mappings"),
    "unit": ({"node_info": {"a": {"ON": "GPU"}}}, "`ON` cannot be `GPU`"),
    "word": ({"optimization": "set_model_input_int8"}, "unknown `set_model_input_int8`"),
    "words": ({"optimization": [1]}, "`optimization` must be words"),
    "node type": ({"set_node_data_type": "conv1"}, "`conv1` does not give a node its type"),
    "pictures of a feature map": (
        {"preprocess_on": True, "input_type_train": "featuremap", "input_type_rt": "featuremap"},
        "`preprocess_on` is for inputs that are pictures",
    ),
    "flag": ({"debug": "maybe"}, "`debug` must be True or False"),
    "source": ({"input_source": {"data": "disk"}}, "`input_source` must name a source"),
}


@pytest.mark.parametrize("name", WRONG)
def test_one_clear_error(name: str):
    changes, expected = WRONG[name]
    assert expected in error(**changes)


def test_an_error_points_into_the_vendor_s_file():
    with pytest.raises(ProjectError) as caught:
        translate(document(HB_MAPPER.replace("'bayes-e'", "'bayes-f'")))
    assert str(caught.value.where) == "config.yaml:5:10"
    assert "did you mean" in caught.value.hint or "allowed: " in caught.value.hint


def test_a_missing_group_is_named():
    with pytest.raises(ProjectError, match="missing group `input_parameters`"):
        translate(document("model_parameters: {onnx_model: m.onnx, march: bayes-e}"))


def test_without_a_compiler_group_and_a_prefix_there_are_defaults_and_they_are_told():
    text = re.sub("  output_model_file_prefix.*\n", "", HB_MAPPER.partition("# Compiler")[0])
    assert translate(document(text)).data["compile"]["prefix"] == "model"
    said = [note.what for note in notes(document(text))]
    assert "no `optimize_level`: it is O3 here" in said
    assert "no `output_model_file_prefix`: it is model here" in said


@pytest.mark.parametrize("text", ["", "[]", "a", "model_parameters: 1", "model_parameters: [1]"])
def test_what_is_no_such_file_is_one_error(text):
    with pytest.raises(ProjectError):
        translate(document(text))
