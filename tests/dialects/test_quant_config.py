"""quant_config of hb_compile: four levels, of which the later is the stronger, and two searches."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dialect_cases import HB_COMPILE, changed, document
from npumake.dialects.horizon.config_file import read_config
from npumake.dialects.horizon.dialect import notes, translate
from npumake.digest import Json
from npumake.errors import ProjectError


def text(config: Any, **changes: Any) -> str:
    return changed(HB_COMPILE, {"quant_config": config, **changes})


def native(config: Any, **changes: Any) -> Json:
    return translate(document(text(config, **changes))).data


def of_model(**keys: Any) -> Json:
    return {"model_config": keys}


def calibration(**activation: Any) -> Json:
    return native(of_model(activation=activation))["calibration"]


@pytest.mark.parametrize("nested", [False, True], ids=["directly", "below `default`"])
def test_quant_config_beats_calibration_type(nested: bool):
    level = {"all_node_type": "int8", "activation": {"calibration_type": "max"}}
    config = {"model_config": {"default": level} if nested else level}
    found = native(config, calibration_type="kl")
    assert found["calibration"] == {"method": "max"}
    assert found["quantization"] == {"types": [{"*": "int8"}]}


KL = {"calibration_type": "kl"}
SINGLE: dict[str, Json] = {"percentiles": [1.0], "per_channel": [False], "asymmetric": []}


def searching(**lists: Json) -> Json:
    return {"method": "modelwise", "modelwise": lists}


FOUND: dict[str, tuple[dict[str, Any], Json]] = {
    "percentile": (
        {"calibration_type": "max", "max_percentile": 0.999},
        {"method": "max_percentile", "percentile": 0.999},
    ),
    "a low percentile is raised": (
        {"calibration_type": "max", "max_percentile": 0.1},
        {"method": "max_percentile", "percentile": 0.5},
    ),
    "bins": ({**KL, "num_bin": 2000}, {"method": "kl", "bins": 2048}),
    "at most": ({**KL, "num_bin": 9000, "max_num_bin": 1000}, {"method": "kl", "bins": 1024}),
    "bins there are": ({**KL, "num_bin": 10**6}, {"method": "kl", "bins": 16384}),
    "symmetric": ({**KL, "asymmetric": False}, {"method": "kl", "symmetric": True}),
    "asymmetric": ({**KL, "asymmetric": True}, {"method": "kl", "symmetric": False}),
    "per channel": ({**KL, "per_channel": True}, {"method": "kl", "per_channel": True}),
    "load": ({"calibration_type": "load"}, {"method": "load"}),
    "a list of one": ({"calibration_type": ["max"]}, {"method": "max"}),
    "a search over methods": (
        {"calibration_type": ["max", "kl"]},
        searching(methods=["max", "kl"], **SINGLE),
    ),
    "a search over shares": (
        {"calibration_type": "max", "max_percentile": [1.0, 0.9995]},
        searching(methods=["max"], **{**SINGLE, "percentiles": [1.0, 0.9995]}),
    ),
    "a search over schemes": (
        {**KL, "asymmetric": [True, False]},
        searching(methods=["kl"], **{**SINGLE, "asymmetric": [True, False]}),
    ),
    "the tool's own search": ({"calibration_type": "default"}, {"method": "modelwise"}),
    "its own, of channels": (
        {"calibration_type": "default", "per_channel": True},
        searching(per_channel=[True]),
    ),
}


@pytest.mark.parametrize(
    ("outside", "activation", "expected"),
    [
        ({"calibration_type": "max", "per_channel": True}, {"max_percentile": 0.99},
         {"method": "max_percentile", "percentile": 0.99, "per_channel": True}),
        ({"calibration_type": "kl", "per_channel": True}, {"asymmetric": True},
         {"method": "kl", "per_channel": True, "symmetric": False}),
        ({"calibration_type": "default"}, {"asymmetric": False}, searching(asymmetric=[False])),
        ({"calibration_type": None}, {"max_percentile": 0.99}, searching(percentiles=[0.99])),
    ],
)  # fmt: skip
def test_without_a_type_of_its_own_activation_changes_the_one_outside(
    outside: Json, activation: Json, expected: Json
):
    usual = {"max_percentile": None, "per_channel": None}
    found = native(of_model(activation=activation), **(usual | outside))
    assert found["calibration"] == expected


@pytest.mark.parametrize("name", FOUND)
def test_activation_says_how_ranges_are_found(name: str):
    activation, expected = FOUND[name]
    assert calibration(**activation) == expected


@pytest.mark.parametrize(
    ("search", "expected"),
    [
        ("modelwise_search", searching(similarity=0.99, metric="mse")),
        ("layerwise_search", {"method": "mix"}),
    ],
)
def test_a_search_is_over_the_model_or_layer_by_layer(search: str, expected: Json):
    found = native(of_model(**{search: {"similarity": 0.99, "metric": "mse"}}))
    assert found["calibration"] == expected


def test_without_a_folder_there_is_nothing_to_search_by():
    found = native(of_model(modelwise_search={}), cal_data_dir=None)
    assert found["calibration"] == {"method": "skip"}


def test_weights_are_corrected_where_they_are_asked_to_be():
    found = native(of_model(weight={"bias_correction": {"num_sample": 8, "metric": "mse"}}))
    assert found["quantization"] == {"bias_correction": True}


def test_the_types_of_four_levels_are_rules_in_their_order():
    config = {
        "node_config": {"conv1": {"qtype": "int8"}, "conv2": {"ON": "float16"}},
        "subgraph_config": {"head": {"inputs": ["a", "b"], "outputs": ["c"], "qtype": "int16"}},
        "op_config": {"Softmax": {"qtype": "float32"}},
        "model_config": {"all_node_type": "int16", "model_output_type": "int8"},
    }
    assert native(config)["quantization"] == {
        "types": [
            {"*": "int16"},
            {"Softmax(*)": "float32"},
            {"a, b -> c": "int16"},
            {"conv1": "int8"},
            {"conv2": "float16"},
        ],
        "outputs": "int8",
        "optional": ["Softmax(*)", "a, b -> c", "conv1", "conv2"],
    }


def test_the_type_of_a_node_beats_that_of_a_place_of_its_operator():
    config = {
        "op_config": {"Add": {"InputType": "int16", "OutputType": "int16"}},
        "node_config": {
            "add1": {"qtype": "int8"},
            "add2": {"input1": "int8", "qtype": "int16"},
            "add3": {"ON": "CPU"},
        },
    }
    assert native(config)["quantization"] == {
        "types": [{"add1": "int8"}, {"add2": "int16"}],
        "layers": {
            "Add(*)": {"input": "int16", "output": "int16"},
            "add1": {"input": "int8", "output": "int8"},
            "add2": {"input": "int16", "output": "int16", "inputs": [None, "int8"]},
        },
        "cpu": ["add3"],
        "optional": ["Add(*)", "add1", "add2", "add3"],
    }


def test_node_info_is_the_last_word():
    config = {"node_config": {"a": {"input0": "int16"}}}
    found = native(config, node_info={"a": {"InputType0": "int8"}})
    assert found["quantization"]["layers"] == {"a": {"inputs": ["int8"]}}


def test_what_has_another_effect_here_is_told():
    activation = {"num_bin": [1024, 2048], "calibration_type": "kl"}
    model = {"activation": activation, "layerwise_search": {"similarity": 0.9}}
    config = {"model_config": model, "node_config": {"a": {"qtype": "dual-int16"}}}
    said = [note.what for note in notes(document(text(config))) if "ignored: it" not in note.what]
    assert [what.partition(":")[0] for what in said if "working_dir" not in what] == [
        "`similarity` is ignored",
        "`dual-int16` becomes int16",
        "`num_bin`",
    ]


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"modle_config": {}, "op_config": {}}, "unknown level `modle_config`"),
        ({"op_config": {"Conv": "int8"}}, "`Conv` must be a mapping"),
        ({"op_config": {"Conv": {"qtyp": "int8"}}}, "unknown key `qtyp`"),
        ({"op_config": {"Conv": {"qtype": "int4"}}}, "`qtype` cannot be `int4`"),
        ({"op_config": {"Conv": {"InputType": "float16"}}}, "`float16` is for a whole node"),
        ({"subgraph_config": {"h": {"inputs": [], "qtype": "int16"}}}, "names of its inputs"),
        (of_model(all_node_typ="int8"), "unknown key `all_node_typ`"),
        (of_model(model_output_type="float16"), "`model_output_type` cannot be `float16`"),
        (of_model(weight={"bits": 4}), "unknown key `bits`"),
        (of_model(activation={"num_bins": 4}), "unknown key `num_bins`"),
        (of_model(activation={"num_bin": "x"}), "`num_bin` must be a number"),
        (of_model(activation={"num_bin": []}), "`num_bin` lists nothing"),
        (of_model(activation={"max_percentile": 1.5}), "`max_percentile` must be 0.5..1"),
        (of_model(activation={"calibration_type": "k"}), "`calibration_type` cannot be `k`"),
        (of_model(activation={"asymmetric": 1}), "`asymmetric` must be True or False"),
        (of_model(activation={"calibration_type": ["kl", "load"]}), "a search has no `load`"),
        (of_model(modelwise_search={"metric": "psnr"}), "`metric` cannot be `psnr`"),
        (of_model(modelwise_search=1), "`modelwise_search` must be a mapping"),
        ("./quant.json", "must be a mapping, or name a JSON file"),
    ],
)
def test_one_clear_error(config: Any, expected: str):
    with pytest.raises(ProjectError) as caught:
        native(config)
    assert expected in str(caught.value)
    assert str(caught.value.where).startswith("config.yaml:")


def test_a_json_file_of_its_own_is_read_and_its_mistakes_are_shown_there(tmp_path: Path):
    config, beside = tmp_path / "config.yaml", tmp_path / "quant.json"
    config.write_text(text("quant.json"))
    beside.write_text(json.dumps(of_model(all_node_type="int16"), indent="\t"))
    read = read_config(config)
    assert read.files == (config, beside)
    assert translate(read.document).data == native(of_model(all_node_type="int16"))
    beside.write_text('{"model_config":\n\t{"all_node_type": "int5"}}')
    with pytest.raises(ProjectError) as caught:
        translate(read_config(config).document)
    where = caught.value.where
    assert (Path(where.path).name, where.line, where.column) == ("quant.json", 2, 20)


def test_a_json_file_that_is_not_there_is_one_error(tmp_path: Path):
    config = tmp_path / "config.yaml"
    config.write_text(text("none.json"))
    with pytest.raises(ProjectError, match=r"no file `none.json` .*config.yaml:"):
        read_config(config)
