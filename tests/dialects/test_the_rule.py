"""Each key and value of hb_mapper and hb_compile acts, or is a note, or is an error.

For every documented key and each documented value: the project that is translated or its notes
differ from those without it.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from typing import Any

import pytest

import vendor_values
from dialect_cases import HB_COMPILE, HB_MAPPER, changed, document
from npumake.dialects.drobotics import keys as hb_mapper
from npumake.dialects.horizon import keys as hb_compile
from npumake.dialects.table import DIALECTS
from npumake.dialects.vendor_yaml import VendorKey
from npumake.errors import ProjectError
from workspaces import shared_data

TOOLS = {
    "hb_mapper": (HB_MAPPER, hb_mapper.KEYS, vendor_values.HB_MAPPER),
    "hb_compile": (HB_COMPILE, hb_compile.KEYS, vendor_values.HB_COMPILE),
}
# Keys without which hb_mapper and hb_compile refuse the file are compared with another value.
ANOTHER = {
    "prototxt": "other.prototxt",
    "caffe_model": "other.caffemodel",
    "onnx_model": "another.onnx",
    "march": {"hb_mapper": "bayes", "hb_compile": "nash-b"},
    "input_type_train": "rgb",
    "input_layout_train": "NHWC",
    "input_type_rt": "rgb",
    "norm_type": {"hb_mapper": "data_mean", "hb_compile": None},
    "cal_data_type": {"hb_mapper": "float32", "hb_compile": None},
}
# The example says these; without them it says something else than the value under test.
CONTEXT: dict[str, dict[str, Any]] = {
    "input_layout_train": {"input_shape": None},
}
NODE_INFO: tuple[Any, ...] = (
    {"a": {"ON": "CPU"}},
    {"a": {"ON": "BPU"}},
    {"a": {"InputType": "int16"}},
    {"a": {"InputType": "int8"}},
    {"a": {"InputType0": "int16"}},
    {"a": {"InputType3": "int8"}},
    {"a": {"OutputType": "int16"}},
    {"a": {"OutputType": "int8"}},
    {"a": {"OutputType0": "int8"}},
    {"HZ_PREPROCESS_FOR_data": {"ON": "BPU"}},
    {"s_mul_FROM_QUANTIZED_SOFTMAX": {"ON": "BPU"}},
    "a:int16;b:int8",
)
OPTIMIZATION = (
    "set_model_output_int8",
    "set_model_output_int16",
    "set_Softmax_input_int8",
    "set_Softmax_input_int16",
    "set_softmax_output_int8",
    "set_Softmax_output_int16",
    "set_all_nodes_int16",
    "run_fast",
    "set_model_input_int8",
    "anything",
)
QUANT_CONFIG: tuple[Any, ...] = (
    *({"model_config": {"all_node_type": kind}} for kind in ("int8", "int16", "float16")),
    *({"model_config": {"model_output_type": kind}} for kind in ("int8", "int16", "float32")),
    *({"model_config": {"activation": {"calibration_type": kind}}} for kind in ("kl", "load")),
    {"model_config": {"activation": {"calibration_type": "max", "max_percentile": 0.99}}},
    {"model_config": {"activation": {"num_bin": 512}}},
    {"model_config": {"activation": {"max_num_bin": 512}}},
    {"model_config": {"activation": {"per_channel": True}}},
    {"model_config": {"activation": {"asymmetric": True}}},
    {"model_config": {"weight": {"bias_correction": {"num_sample": 1, "metric": "mse"}}}},
    {"model_config": {"modelwise_search": {"similarity": 0.9, "metric": "mse"}}},
    {"model_config": {"layerwise_search": {"similarity": 0.9, "metric": "mse"}}},
    *({"op_config": {"softmax": {"qtype": kind}}} for kind in ("int8", "int16", "int32")),
    *({"op_config": {"Conv": {place: "int16"}}} for place in ("InputType", "OutputType")),
    {"op_config": {"Conv": {"qtype": "dual-int16"}}},
    {"op_config": {"Conv": {"qtype": "int16-ec"}}},
    {"subgraph_config": {"s": {"inputs": ["a"], "outputs": ["b"], "qtype": "int16"}}},
    {"node_config": {"a": {"qtype": "int16"}}},
    {"node_config": {"a": {"ON": "int16"}}},
    {"node_config": {"a": {"ON": "CPU"}}},
    {"node_config": {"a": {"input0": "int16"}}},
)
FORMS: dict[str, tuple[Any, ...]] = {
    "node_info": NODE_INFO,
    "optimization": OPTIMIZATION,
    "quant_config": QUANT_CONFIG,
}


def answer(tool: str, changes: dict[str, Any]) -> Any:
    """The project and its notes, or the error, as the user sees it."""
    text = changed(TOOLS[tool][0], changes)
    try:
        found = DIALECTS[tool]().translate(document(text), "", {})
    except ProjectError as error:
        return error.what
    return found.data, [note.what for note in DIALECTS[tool]().notes(document(text))]


def values(key: str, asked: VendorKey, value: Any) -> Iterator[Any]:
    yield value
    yield from FORMS.get(key.partition(".")[2], ())
    yield from (word for word in asked.allowed if word != str(value))


def cases() -> Iterator[Any]:
    for tool, (_, keys, others) in TOOLS.items():
        for key, asked in keys.items():
            value, beside = others[key]
            for each in values(key, asked, value):
                if each != asked.default and str(each) != str(asked.default):
                    name = f"{tool}-{key}-{json.dumps(each)[:60]}"
                    yield pytest.param(tool, key, each, beside, id=name)


@pytest.mark.parametrize(("tool", "key", "value", "beside"), list(cases()))
def test_a_value_acts_or_is_told_or_refused(tool: str, key: str, value: Any, beside: Any):
    name = key.partition(".")[2]
    context = {**CONTEXT.get(name, {}), **beside}
    other = ANOTHER.get(name)
    other = other[tool] if isinstance(other, dict) else other
    if other == value:
        other = None
    assert answer(tool, {**context, name: value}) != answer(tool, {**context, name: other})


@pytest.mark.parametrize("tool", TOOLS)
def test_an_unknown_key_of_any_group_is_told_or_refused(tool: str):
    example = document(TOOLS[tool][0]).data
    for group in {key.partition(".")[0] for key in TOOLS[tool][1]}:
        inside = {**(example.get(group) or {}), "anything": 1}
        text = document(json.dumps({**example, group: inside}))
        notes = [note.what for note in DIALECTS[tool]().notes(text)]
        if not any("`anything`" in what for what in notes):
            with pytest.raises(ProjectError, match="unknown key `anything`"):
                DIALECTS[tool]().translate(text, "", {})


SAMPLES: dict[str, Any] = {
    "string": "x",
    "integer": 1,
    "number": 0.75,
    "boolean": True,
    "object": {"a": 1},
    "array": [["a"]],
}
DEPRECATED = {"model_parameters.set_node_data_type"}  # no key of the schema, told as ignored


def vendor_schema() -> dict[str, tuple[str, ...]]:
    """The types of each key that hb_compile itself accepts."""
    file = shared_data().parent / "oracle" / "hb_compile_keys.tsv"
    if not file.is_file():
        pytest.skip("the vendor's schema lies beside the shared data")
    lines = [line for line in file.read_text().splitlines() if not line.startswith("#")]
    rows = csv.DictReader(lines, delimiter="\t")
    return {f"{row['group']}.{row['key']}": tuple(row["types"].split(",")) for row in rows}


def test_the_keys_and_types_are_those_of_the_vendor_s_schema():
    ours = {key: asked.types for key, asked in hb_compile.KEYS.items() if key not in DEPRECATED}
    assert ours == vendor_schema()


@pytest.mark.parametrize("kind", SAMPLES)
@pytest.mark.parametrize("key", hb_compile.KEYS)
def test_a_value_of_a_type_the_schema_lacks_is_told_or_refused(key: str, kind: str):
    """A number is a text to YAML."""
    asked, name = hb_compile.KEYS[key], key.partition(".")[2]
    value = SAMPLES[kind]
    is_number = kind in ("integer", "number") and "string" in asked.types
    if kind in asked.types or is_number or (kind == "integer" and "number" in asked.types):
        return
    found = answer("hb_compile", {name: value})
    if isinstance(found, str):
        return
    assert any(f"`{name}`" in what for what in found[1])


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"run_on_cpu": "a", "run_on_bpu": "b;a"}, "`a` is not on the CPU"),
        ({"run_on_cpu": "a;b", "node_info": {"a": {"ON": "BPU"}}}, "`a` is not on the CPU"),
        ({"run_on_bpu": "a", "node_info": {"a": {"ON": "CPU"}}}, "`a` is not on the BPU"),
        ({"run_on_bpu": "a", "node_info": {"a": {"ON": "BPU"}}}, None),
        ({"run_on_cpu": "a", "node_info": {"a": {"OutputType": "int16"}}}, None),
    ],
)
def test_the_weaker_of_two_units_of_a_node_is_a_note(tool: str, changes: dict[str, Any], message):
    found = DIALECTS[tool]().notes(document(changed(TOOLS[tool][0], changes)))
    told = [note.what.partition(":")[0] for note in found if "is not on the" in note.what]
    assert told == ([message] if message else [])
