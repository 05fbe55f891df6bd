"""What every dialect promises. A new one is tested by being listed in DIALECTS."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from dialect_cases import ARA2, HB_COMPILE, HB_MAPPER, document

from pipeline.errors import ProjectError
from pipeline.project.expand import routes
from pipeline.project.reader import project_of
from pipeline.targets.dialects import DIALECTS

EXAMPLES = {"hb_mapper": HB_MAPPER, "hb_compile": HB_COMPILE, "ara2": ARA2}
GROUPED = ("hb_mapper", "hb_compile")  # keys in groups, and lists divided by `;`
every_dialect = pytest.mark.parametrize("name", DIALECTS)
STRANGE: tuple[Any, ...] = (
    *(None, True, -1, 0, 10**18, 1e300, "", " ", ";", ";;", "a;b", "x" * 999, "1x3", "../..", "*"),
    *([], [1], ["a", {"b": 1}], {}, {"a": 1}, {"a": {"b": [1]}}, {"model_config": 1}, {"a": None}),
)


@every_dialect
def test_there_is_a_full_example(name: str):
    assert name in EXAMPLES


@every_dialect
def test_every_value_of_the_native_document_has_a_place_in_the_vendor_s_file(name: str):
    native = DIALECTS[name].translate(document(EXAMPLES[name]), "")
    assert set(native.places) == set(routes(native.data))
    assert {spot.value.path for spot in native.places.values()} == {"config.yaml"}
    assert all(spot.value.line for route, spot in native.places.items() if route)


@every_dialect
def test_a_translation_depends_on_nothing_but_the_document(name: str):
    first, second = (DIALECTS[name].translate(document(EXAMPLES[name]), "v") for _ in range(2))
    assert (first, list(first.places)) == (second, list(second.places))


@every_dialect
@pytest.mark.parametrize("strange", STRANGE, ids=lambda value: json.dumps(value)[:20])
def test_a_strange_value_anywhere_is_translated_or_one_error(name: str, strange: Any):
    example = document(EXAMPLES[name]).data
    if name not in GROUPED:
        for key in example:
            assert_translated_or_refused(name, json.dumps({**example, key: strange}))
        return
    known = {key for group in example.values() for key in group}
    extra = {"node_info", "quant_config", "input_source", "max_percentile", "std_value", "jobs"}
    for group in example:
        for key in sorted({*example[group], *(extra - known)}):
            text = json.dumps({**example, group: {**example[group], key: strange}})
            assert_translated_or_refused(name, text)
        assert_translated_or_refused(name, json.dumps({**example, group: strange}))
    with pytest.raises(ProjectError, match="unknown group `x`"):
        DIALECTS[name].translate(document(json.dumps({**example, "x": strange})), "")


@every_dialect
def test_an_unknown_key_at_the_top_is_refused(name: str):
    example = document(EXAMPLES[name]).data
    with pytest.raises(ProjectError, match=r"unknown (group|key) `x`"):
        DIALECTS[name].translate(document(json.dumps({**example, "x": 1})), "")


def assert_translated_or_refused(name: str, text: str) -> None:
    with suppress(ProjectError):
        found = DIALECTS[name].translate(document(text), "")
        DIALECTS[name].notes(document(text))
        assert set(found.places) == set(routes(found.data))


@pytest.mark.parametrize("name", GROUPED)
def test_one_value_is_one_value(name: str):
    text = re.sub("march: .*", "march: bayes-e;nash-e", EXAMPLES[name])
    with pytest.raises(ProjectError, match="`march` cannot be `bayes-e;nash-e`"):
        DIALECTS[name].translate(document(text), "")


@every_dialect
def test_the_full_example_is_a_valid_project(name: str):
    found = project_of(DIALECTS[name].translate(document(EXAMPLES[name]), ""), "net", Path())
    assert found.sections.targets
