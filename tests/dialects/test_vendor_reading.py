"""How the YAML of hb_mapper and hb_compile is read: lists, repeated keys, types, vendors' names."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dialect_cases import HB_COMPILE, HB_MAPPER, changed, document
from npumake.dialects.horizon.keys import MARCHES, PLANNED_AS
from npumake.dialects.table import DIALECTS
from npumake.digest import Json
from npumake.errors import ProjectError
from npumake.project.vendor import lenient_config, repeat_notes

EXAMPLES = {"hb_mapper": HB_MAPPER, "hb_compile": HB_COMPILE}
both = pytest.mark.parametrize("tool", EXAMPLES)


def native(tool: str, **changes: Any) -> Json:
    return DIALECTS[tool]().translate(document(changed(EXAMPLES[tool], changes)), "", {}).data


def notes(tool: str, **changes: Any) -> list[str]:
    found = DIALECTS[tool]().notes(document(changed(EXAMPLES[tool], changes)))
    return [note.what for note in found]


TWO: dict[str, Any] = {
    "input_name": "img;feat",
    "input_type_train": "rgb;featuremap",
    "input_type_rt": "nv12;featuremap",
    "input_layout_train": "NCHW;NCHW",
    "input_layout_rt": None,
    "input_shape": "1x3x8x8;1x2x8x8",
    "mean_value": "1 2 3;None",
    "scale_value": "0.5;None",
    "cal_data_dir": "a;b",
    "cal_data_type": "float32;uint8",
    "input_source": None,
}
NORMS = {"hb_mapper": {"norm_type": "data_mean_and_scale;no_preprocess"}, "hb_compile": {}}
LISTS: dict[str, Any] = {
    "input_name": ["img", "feat"],
    "input_type_train": ["rgb", "featuremap"],
    "input_type_rt": ["nv12", "featuremap"],
    "input_layout_train": ["NCHW", "NCHW"],
    "input_shape": [[1, 3, 8, 8], "1x2x8x8"],
    "mean_value": [[1, 2, 3], "None"],
    "scale_value": ["0.5", "None"],
    "cal_data_dir": ["a", "b"],
    "cal_data_type": ["float32", "uint8"],
}


SPELLED: dict[str, Callable[[str], str]] = {
    "lines of Windows": lambda text: text.replace("\n", "\r\n"),
    "a byte order mark": lambda text: "\ufeff" + text,
    "a document with a start and an end": lambda text: f"---\n{text}\n...\n",
    "spaces behind a value": lambda text: text.replace("\n", "  \n"),
    "a comment behind a value": lambda text: text.replace("\n", "  # 注释\n"),
    "no quotes": lambda text: text.replace("'", ""),
    "double quotes": lambda text: text.replace("'", '"'),
    "deeper indented": lambda text: text.replace("\n  ", "\n      "),
    "off": lambda text: re.sub("[Ff]alse", "off", text),
    "FALSE": lambda text: re.sub("[Ff]alse", "FALSE", text),
    "False in quotes": lambda text: re.sub(" [Ff]alse", " 'False'", text),
    "an alias": lambda text: (
        text.replace("./calibration_data", "&x ./calibration_data")
        if "'./cal" not in text
        else text.replace("'./cal", "&x './cal")
    ),
    "a group without keys": lambda text: f"{text}custom_op:\n",
    "keys without values": lambda text: (
        f"{text}custom_op: {{op_register_files: '', custom_op_dir: }}\n"
    ),
}


@both
@pytest.mark.parametrize("how", SPELLED)
def test_a_file_spelled_another_way_is_the_same_project(tool: str, how: str, tmp_path: Path):
    file = tmp_path / "c.yaml"
    file.write_bytes(SPELLED[how](EXAMPLES[tool]).encode())
    read = DIALECTS[tool]().read(file).document
    assert DIALECTS[tool]().translate(read, "", {}).data == native(tool)


@both
@pytest.mark.parametrize("key", LISTS)
def test_a_list_of_yaml_is_a_list_of_the_tool(tool: str, key: str):
    divided = TWO | NORMS[tool]
    assert native(tool, **{**divided, key: LISTS[key]}) == native(tool, **divided)


@both
@pytest.mark.parametrize(
    "key", ["output_nodes", "remove_node_type", "remove_node_name", "run_on_cpu", "run_on_bpu"]
)
def test_a_list_of_nodes_may_be_one_of_yaml(tool: str, key: str):
    items = ["Transpose", "Reshape"]
    assert native(tool, **{key: items}) == native(tool, **{key: ";".join(items)})


@both
def test_the_numbers_of_one_input_may_be_a_list(tool: str):
    assert native(tool, mean_value=[1, 2, 3]) == native(tool, mean_value="1 2 3")
    assert native(tool, input_shape=[1, 3, 64, 64]) == native(tool, input_shape="1x3x64x64")


@both
@pytest.mark.parametrize("text", ["1X3X64X64", "1 x 3 x 64 x 64"])
def test_a_shape_may_have_capitals_and_spaces(tool: str, text: str):
    assert native(tool, input_shape=text) == native(tool, input_shape="1x3x64x64")


@both
@pytest.mark.parametrize("value", [[{"a": 1}], [["x"]], [True]])
def test_a_list_of_no_texts_is_one_error(tool: str, value: Json):
    with pytest.raises(ProjectError, match=r"`input_name` must be a list of texts|input"):
        native(tool, input_name=value)


@both
@pytest.mark.parametrize("key", ["mean_value", "scale_value", "cal_data_dir", "input_layout_train"])
def test_a_last_divider_ends_the_list(tool: str, key: str):
    given = document(EXAMPLES[tool]).data
    value = next(group[key] for group in given.values() if key in group)
    assert native(tool, **{key: f"{value};"}) == native(tool)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("float32", ["float32", "float32"]),
        ("float32;", ["float32", "float32"]),
        ("float32;float32", ["float32", "float32"]),
        ("float32;uint8", ["float32", "uint8"]),
        (None, ["uint8", "uint8"]),
    ],
)
def test_the_type_of_the_samples_is_one_for_all_or_one_each(value, expected):
    found = native("hb_mapper", **{**TWO, **NORMS["hb_mapper"], "cal_data_type": value})
    assert [found["data"][name]["dtype"] for name in ("img", "feat")] == expected


def test_a_feature_map_needs_no_norm_type():
    feature = {"input_type_train": "featuremap", "input_type_rt": "featuremap"}
    none = {"norm_type": None, "mean_value": None, "scale_value": None}
    assert not {"mean", "scale"} & set(native("hb_mapper", **feature, **none)["inputs"]["data"])


@both
def test_of_a_node_that_is_written_twice_the_last_counts_with_a_note(tool: str, tmp_path: Path):
    twice = "{a: {ON: CPU, InputType: int8}, b: {ON: CPU}, a: {ON: BPU}}"
    file = tmp_path / "c.yaml"
    file.write_text(
        EXAMPLES[tool].replace("  layer_out_dump", f"  node_info: {twice}\n  layer_out_dump")
    )
    read = DIALECTS[tool]().read(file).document
    found = DIALECTS[tool]().translate(read, "", {}).data
    assert found["quantization"] == {"npu": ["a"], "cpu": ["b"], "optional": ["a", "b"]}
    assert [note.what for note in repeat_notes(read)] == [
        "`a` is written twice: the last one counts"
    ]


def test_what_is_written_again_leaves_no_place_of_the_first(tmp_path: Path):
    file = tmp_path / "c.yaml"
    file.write_text("a: {b: {c: 1}, d: 2}\na: [1]\n")
    read = lenient_config(file).document
    assert (read.data, set(read.places)) == ({"a": [1]}, {(), ("a",), ("a", 0)})


@both
@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("HZ_PREPROCESS_FOR_data", "preprocess_data"),
        ("/dfl/Softmax_FROM_QUANTIZED_SOFTMAX", "/dfl/Softmax"),
        ("/dfl/Softmax_reducesum_FROM_QUANTIZED_SOFTMAX", "/dfl/Softmax"),
        ("/dfl/Softmax_exp_FROM_QUANTIZED_SOFTMAX", "/dfl/Softmax"),
        ("/norm/Div_reciprocal", "/norm/Div"),
        ("/norm/Div_1_mul", "/norm/Div_1"),
        ("Div_mul", "Div"),
        ("UNIT_CONV_FOR_/m.0/Add", "/m.0/Add"),
        ("/norm/Mul_mul", "/norm/Mul_mul"),
    ],
)
def test_a_node_that_the_tool_inserts_is_ours_of_that_meaning(tool: str, name: str, ours: str):
    asked = {"ON": "BPU", "InputType": "int8"}
    found = native(tool, node_info={name: asked})["quantization"]
    assert (found["npu"], list(found["layers"])) == ([ours], [ours])
    assert native(tool, run_on_cpu=name)["quantization"]["cpu"] == [ours]


@both
def test_node_info_may_be_a_text(tool: str):
    found = native(tool, node_info="a:int16;/m/b:int8")["quantization"]
    assert found == {"types": [{"a": "int16"}, {"/m/b": "int8"}], "optional": ["a", "/m/b"]}


@both
def test_a_mapping_in_quotes_is_a_mapping(tool: str):
    given = {"data": "pyramid"}
    assert native(tool, input_source=json.dumps(given)) == native(tool, input_source=given)


@pytest.mark.parametrize("name", ["softmax", "Softmax", "SOFTMAX"])
def test_the_letters_of_an_operator_may_be_small(name: str):
    config = {"op_config": {name: {"qtype": "int16"}}}
    found = native("hb_compile", quant_config=config)["quantization"]
    assert found == {"types": [{"Softmax(*)": "int16"}], "optional": ["Softmax(*)"]}
    side = native("hb_mapper", optimization=f"set_{name}_input_int16")["quantization"]
    assert list(side["layers"]) == ["Softmax(*)"]


def test_an_operator_that_nobody_knows_is_optional_too():
    config = {"op_config": {"HzSwish": {"qtype": "int16"}}}
    found = native("hb_compile", quant_config=config)["quantization"]
    assert found["optional"] == ["HzSwish(*)"]


@pytest.mark.parametrize(
    "config",
    [
        {"op_config": {"Conv": {"qtype": "int32"}}},
        {"op_config": {"Conv": {"OutputType": "int32"}}},
        {"node_config": {"a": {"qtype": "int32"}}},
        {"model_config": {"all_node_type": "int32"}},
        {"model_config": {"model_output_type": "int32"}},
    ],
)
def test_sums_are_asked_of_nothing_and_that_is_told(config: Json):
    asked = native("hb_compile", quant_config=config).get("quantization", {})
    assert set(asked) <= {"optional"}
    said = notes("hb_compile", quant_config=config)
    assert any(what.startswith("`int32` is ignored") for what in said)


@pytest.mark.parametrize("march", MARCHES)
def test_every_march_is_planned_and_of_a_name_alone_that_is_told(march: str):
    cores = {"core_num": 1, "max_l2m_size": None}
    assert native("hb_compile", march=march, **cores)["targets"] == [PLANNED_AS.get(march, march)]
    said = any(f"`{march}`" in what for what in notes("hb_compile", march=march))
    assert said == (march in PLANNED_AS)


@both
def test_a_single_sample_is_taken(tool: str):
    (samples,) = native(tool)["data"].values()
    assert samples["allow"] == ["few"]
