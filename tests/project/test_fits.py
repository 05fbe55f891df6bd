"""The quick answer is jsonschema's: never yes where it finds a mistake, yes to what is right."""

from __future__ import annotations

import copy
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from draws import examples
from npumake.project.document import read_document
from npumake.project.fits import fits
from npumake.project.reader import SCHEMA
from npumake.project.schema import schema_of
from npumake.targets.reader import target_file, target_names
from npumake.targets.target import Target
from project.test_reader import FULL

TARGET = schema_of(Target)
anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 70000)
    | st.floats()
    | st.sampled_from(["", "max", "rdk-x5", "image", "resize", "int16", "rgb"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["method", "path", "files", "*", "image"]), inner)
    ),
    max_leaves=5,
)


def is_right(value: Any, schema: Any) -> bool:
    return not list(jsonschema.Draft202012Validator(schema).iter_errors(value))


def routes(value: Any, route: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else ()
    items = enumerate(value) if isinstance(value, list) else items
    return [route, *(r for key, item in items for r in routes(item, (*route, key)))]


def test_what_is_right_needs_no_second_answer() -> None:
    assert fits(FULL, SCHEMA)
    assert not fits({}, SCHEMA)
    for name in target_names():
        assert fits(read_document(target_file(name)).data, TARGET)


@examples(300)
@given(st.sampled_from(routes(FULL)), st.sampled_from(["put", "drop", "add"]), anything)
def test_it_says_what_jsonschema_says(route: tuple[Any, ...], how: str, new: Any) -> None:
    holder = {"top": copy.deepcopy(FULL)}
    *way, last = ("top", *route)
    inside: Any = holder
    for part in way:
        inside = inside[part]
    if how == "put":
        inside[last] = new
    elif how == "drop":
        del inside[last]
    elif isinstance(inside[last], dict):
        inside[last]["another"] = new
    data = holder.get("top", {})
    assert fits(data, SCHEMA) == is_right(data, SCHEMA)


@pytest.mark.parametrize(
    ("value", "schema", "answer"),
    [
        (True, {"type": "integer"}, False),
        (True, {"type": ["number", "string"]}, False),
        (2.0, {"type": "integer"}, True),
        (2.5, {"type": "integer"}, False),
        (1, {"enum": [True]}, False),
        (float("nan"), {"type": "number", "minimum": 0}, False),
        ("a", {"type": "string", "format": "date"}, False),  # a keyword it does not know
    ],
)
def test_what_it_is_not_sure_of_is_no(value: Any, schema: Any, answer: bool) -> None:
    assert fits(value, schema) is answer
    assert is_right(value, schema) or not answer
