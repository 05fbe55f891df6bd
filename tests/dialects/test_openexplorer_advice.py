"""Advice in the keys of hb_mapper and hb_compile: done as told, the file means what was tried."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from dialect_cases import HB_COMPILE, HB_MAPPER, changed, document
from npumake.dialects.advice import wording_of
from npumake.dialects.table import DIALECTS
from npumake.digest import Json
from npumake.graph import Graph, parse_text
from npumake.project.reader import built
from npumake.project.sections import Calibration, Quantization
from npumake.quant.precision.precision_candidates import promoted, section
from npumake.quant.precision.precision_plan import plan_precision
from npumake.targets.reader import read_target

EXAMPLES = {"hb_mapper": HB_MAPPER, "hb_compile": HB_COMPILE}
TARGETS = {"hb_mapper": "rdk-x5", "hb_compile": "nash-e"}
NAMES = "abcd"
OWN: tuple[dict[str, Any], ...] = (
    {},
    {"node_info": {"b": {"InputType": "int16"}}},
    {"run_on_cpu": "d"},
    {"optimization": "set_Softmax_input_int16"},
)
both = pytest.mark.parametrize("tool", EXAMPLES)


def chain() -> Graph:
    """Four layers, one behind the other, called a to d."""
    weights = ", ".join(f"float[4,4,1,1] w{n} = {{{','.join('1' * 16)}}}" for n in NAMES)
    nodes = "".join(
        f"[{n}] v{n} = Conv({f'v{NAMES[i - 1]}' if i else 'x'}, w{n}) [r{n}] v{n}r = Sigmoid(v{n}) "
        for i, n in enumerate(NAMES)
    )
    text = f"net (float[1,4,8,8] x) => (float[1,4,8,8] vd) <{weights}> {{ {nodes} }}"
    graph = parse_text(f'<ir_version: 8, opset_import: ["" : 13]>\n{text}').with_shapes()
    graph.drop_unused()
    return graph


def native(tool: str, changes: dict[str, Any]) -> Json:
    text = changed(EXAMPLES[tool], {"remove_node_name": None, **changes})
    return DIALECTS[tool]().translate(document(text), "", {}).data


def said(tool: str, changes: dict[str, Any]) -> Quantization:
    return built(Quantization, native(tool, changes).get("quantization", {}))


@both
@pytest.mark.parametrize("to", ["int16", "cpu"])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("own", OWN, ids=str)
def test_a_node_is_promoted_as_it_was_tried(tool: str, to: Any, name: str, own: dict[str, Any]):
    graph, target = chain(), read_target(TARGETS[tool])
    before = said(tool, own)
    asked = promoted(graph, target, before, [name], to)
    line = wording_of(tool).line("quantization", section(asked), section(before))
    after = said(tool, own | yaml.safe_load(line.join("{}")))
    tried, told = (plan_precision(graph, each, target) for each in (asked, after))
    assert (told.reads, told.makes, told.chip) == (tried.reads, tried.makes, tried.chip)


@both
@pytest.mark.parametrize("method", ["kl", "max"])
@pytest.mark.parametrize("own", [{}, {"max_percentile": 0.9999}, {"calibration_type": "default"}])
def test_a_method_is_a_calibration_type(tool: str, method: str, own: dict[str, Any]):
    before = native(tool, own)["calibration"]["method"]
    line = wording_of(tool).line("calibration", {"method": method}, {"method": before})
    found = native(tool, own | (yaml.safe_load(line.join("{}")) or {}))
    assert found["calibration"]["method"] == method


@both
@pytest.mark.parametrize(
    ("section", "asked"),
    [
        ("calibration", {"method": "mse"}),
        ("calibration", {"method": "max", "symmetric": True}),
        ("quantization", {"types": {"a": "float16"}}),
        ("quantization", {"layers": {"a...": {"output": "int16"}}}),
        ("quantization", {"cpu": ["Softmax(*)"]}),
        ("quantization", {"equalize": True}),
        ("quantization", {}),
    ],
)
def test_what_the_file_cannot_say_is_not_advised(tool: str, section: str, asked: Json):
    assert wording_of(tool).line(section, asked, {}) == ""


@both
def test_a_search_is_a_calibration_type(tool: str):
    line = yaml.safe_load(wording_of(tool).search(Calibration("max")))
    assert native(tool, line)["calibration"]["method"] == "modelwise"
    assert wording_of(tool).search(Calibration("modelwise")) == ""


@both
def test_the_preprocessing_has_the_name_of_the_tool(tool: str):
    line = wording_of(tool).line("quantization", {"cpu": ["preprocess_data"]}, {})
    assert yaml.safe_load(line) == {"run_on_cpu": "HZ_PREPROCESS_FOR_data"}
    assert said(tool, yaml.safe_load(line)).cpu == ("preprocess_data",)
