"""Dataclasses → JSON Schema."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Annotated, Literal, get_args, get_type_hints

import pytest
from jsonschema import Draft202012Validator

from npumake.digest import key_of, plain
from npumake.project.schema import is_choice, schema_of
from npumake.project.sections import Doc, FilePath, Sections


def test_the_schema_is_a_schema():
    Draft202012Validator.check_schema(schema_of(Sections))


def test_every_kind_of_key_has_its_keywords():
    @dataclass(frozen=True)
    class One:
        path: Annotated[FilePath, Doc("A file.")]
        many: Mapping[str, int]
        size: Annotated[int | tuple[int, ...] | None, Doc("Some.", minimum=1)] = None
        mode: Literal["a", 2] | None = None
        on: bool = False
        runs: Annotated[int | Literal["all", "off"], Doc("Some.", minimum=1)] = 8

    assert schema_of(One) == {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "npumake project",
        "type": "object",
        "additionalProperties": False,
        "required": ["path", "many"],
        "properties": {
            "path": {"description": "A file.", "type": "string", "minLength": 1},
            "many": {"type": "object", "additionalProperties": {"type": "integer"}},
            "size": {
                "description": "Some.",
                "type": ["integer", "array", "null"],
                "minimum": 1,
                "items": {"type": "integer", "minimum": 1},
                "default": None,
            },
            "mode": {"enum": ["a", 2, None], "default": None},
            "on": {"type": "boolean", "default": False},
            "runs": {
                "description": "Some.",
                "type": ["integer", "string"],
                "minimum": 1,
                "pattern": "^(all|off)$",
                "default": 8,
            },
        },
    }


@pytest.mark.parametrize("hint", [set[int], tuple[int, str], str | Literal["auto"], object])
def test_a_type_that_yaml_cannot_tell_is_refused(hint):
    @dataclass(frozen=True)
    class One:
        key: hint

    with pytest.raises(TypeError):
        schema_of(One)


def classes(hint):
    """Every dataclass reachable from a type."""
    if is_dataclass(hint) or is_choice(hint):
        yield from [hint] if is_dataclass(hint) else []
        hint = tuple[*get_type_hints(hint).values()]
    for inner in get_args(hint):
        yield from classes(inner)


def objects(schema):
    """Every schema in `schema`, but for the overlay's, which has neither defaults nor demands."""
    if isinstance(schema, dict):
        yield schema
        for key, inner in schema.items():
            yield from objects(inner) if key != "$defs" else ()


def test_every_default_is_in_the_schema():
    kinds = ("object", ["object", "null"], ["string", "object"])
    found = [s for s in objects(schema_of(Sections)) if s.get("type") in kinds]
    found = [s for s in found if "properties" in s]
    sections = list(classes(Sections))
    assert len(sections) == len(found) > 3
    for section in sections:
        names = [key_of(key) for key in fields(section)]
        printed = next(s for s in found if list(s["properties"]) == names)
        optional = [name for name in names if name not in printed.get("required", ())]
        required = {name: placeholder(section, name) for name in printed.get("required", ())}
        value = plain(section(**required))
        assert {n: printed["properties"][n]["default"] for n in optional} == {
            n: value[n] for n in optional
        }


def placeholder(section, name):
    return f"{section.__name__}.{name}"


def test_every_key_has_help():
    for schema in objects(schema_of(Sections)):
        for key, inner in schema.get("properties", {}).items():
            assert "description" in inner, key
