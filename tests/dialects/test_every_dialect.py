"""What every dialect promises. A new one is tested by being listed in DIALECTS."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import fields
from functools import reduce
from pathlib import Path
from typing import Any

import pytest

from dialect_cases import ARA2, BESIDE, HB_COMPILE, HB_MAPPER, SYNAP, document
from npumake.dialects.table import DIALECTS
from npumake.errors import ProjectError
from npumake.project.document import Document, Route
from npumake.project.expand import merged, routes
from npumake.project.reader import Project, project_of, read_project
from npumake.project.sections import Sections

EXAMPLES = {"hb_mapper": HB_MAPPER, "hb_compile": HB_COMPILE, "ara2": ARA2, "synap": SYNAP}
GROUPED = ("hb_mapper", "hb_compile")  # keys in groups, and lists divided by `;`
every_dialect = pytest.mark.parametrize("name", DIALECTS)
STRANGE: tuple[Any, ...] = (
    *(None, True, -1, 0, 10**18, 1e300, "", " ", ";", ";;", "a;b", "x" * 999, "1x3", "../..", "*"),
    *([], [1], ["a", {"b": 1}], {}, {"a": 1}, {"a": {"b": [1]}}, {"model_config": 1}, {"a": None}),
)


def translated(name: str, text: str, base: str = "") -> Document:
    return DIALECTS[name]().translate(document(text), base, BESIDE[name])


@every_dialect
def test_there_is_a_full_example(name: str):
    assert name in EXAMPLES


@every_dialect
def test_every_value_of_the_native_document_has_a_place_in_the_vendor_s_file(name: str):
    native = translated(name, EXAMPLES[name])
    assert set(native.places) == set(routes(native.data))
    assert {spot.value.path for spot in native.places.values()} == {"config.yaml"}
    assert all(spot.value.line for route, spot in native.places.items() if route)


@every_dialect
def test_a_translation_depends_on_nothing_but_the_document(name: str):
    first, second = (translated(name, EXAMPLES[name], "v") for _ in range(2))
    assert (first, list(first.places)) == (second, list(second.places))


@every_dialect
@pytest.mark.parametrize("strange", STRANGE, ids=lambda value: json.dumps(value)[:20])
def test_a_strange_value_anywhere_is_translated_or_one_error(name: str, strange: Any):
    example = document(EXAMPLES[name]).data
    extra = {"node_info", "quant_config", "input_source", "max_percentile", "std_value", "jobs"}
    for route in routes(example):
        assert_translated_or_refused(name, json.dumps(replaced(example, route, strange)))
        for key in extra if isinstance(_at(example, route), dict) else ():
            text = json.dumps(replaced(example, (*route, key), strange))
            assert_translated_or_refused(name, text)
    with pytest.raises(ProjectError, match=r"unknown (group|key) `x`"):
        translated(name, json.dumps({**example, "x": strange}))


def _at(data: Any, route: Route) -> Any:
    return reduce(lambda inside, key: inside[key], route, data)


def replaced(data: Any, route: Route, value: Any) -> Any:
    """The same data with another value at `route`."""
    if not route:
        return value
    copy = json.loads(json.dumps(data))
    _at(copy, route[:-1])[route[-1]] = value
    return copy


def assert_translated_or_refused(name: str, text: str) -> None:
    with suppress(ProjectError):
        found = translated(name, text)
        DIALECTS[name]().notes(document(text))
        assert set(found.places) == set(routes(found.data))


@pytest.mark.parametrize("name", GROUPED)
def test_one_value_is_one_value(name: str):
    text = re.sub("march: .*", "march: bayes-e;nash-e", EXAMPLES[name])
    with pytest.raises(ProjectError, match="`march` cannot be `bayes-e;nash-e`"):
        translated(name, text)


@every_dialect
def test_the_full_example_is_a_valid_project(name: str):
    beside = document(json.dumps(BESIDE[name]))
    found = project_of(merged(translated(name, EXAMPLES[name]), beside), "net", Path())
    assert found.sections.targets


@every_dialect
def test_its_file_is_never_read_as_a_section(name: str, tmp_path: Path):
    """Whatever it is called: what `config` names is the vendor's."""
    plain = spoken(tmp_path / "plain" / "p", name, "vendor.yaml")
    for section in fields(Sections):
        called = f"{section.name}.yaml"
        found = spoken(tmp_path / section.name / "p", name, called)
        assert found.sections == plain.sections, called
        assert [note.what for note in found.notes] == [note.what for note in plain.notes], called
        assert [file.name for file in found.files][:2] == ["project.yaml", called]


def spoken(folder: Path, name: str, config: str) -> Project:
    """The project that a vendor's full example makes under this name."""
    folder.mkdir(parents=True)
    said = {"dialect": name, "config": config, **BESIDE[name]}
    (folder / "project.yaml").write_text(json.dumps(said))
    (folder / config).write_text(EXAMPLES[name])
    return read_project(folder, DIALECTS)
