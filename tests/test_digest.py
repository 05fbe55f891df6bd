"""Canonical JSON: what is equal as JSON has one spelling and one digest."""

from __future__ import annotations

import json
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npumake.digest import canonical, of_document, plain


class Flag(int):
    """A scalar that is not exactly of a JSON type."""


class Pair(NamedTuple):
    left: Any
    right: Any


@dataclass(frozen=True)
class Section:
    with_: Any
    other: Any = None


scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
scalars = scalars.filter(lambda value: value not in (float("inf"), float("-inf")))
documents = st.recursive(
    scalars,
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(documents)
def test_a_document_is_plain_already_and_reads_back(document: Any) -> None:
    assert plain(document) == document
    assert json.loads(canonical(document)) == document


@given(documents, documents)
def test_however_it_is_held_a_document_has_one_digest(a: Any, b: Any) -> None:
    expected = of_document({"other": [a, b], "with": {"1": a}})
    assert of_document(Section({1: a}, (a, b))) == expected
    assert of_document(Section(OrderedDict({"1": a}), Pair(a, b))) == expected
    assert of_document(OrderedDict({"with": {"1": a}, "other": [a, b]})) == expected


def test_keys_are_sorted_as_text() -> None:
    assert canonical({10: Flag(1), 2: True}) == b'{"10":1,"2":true}'


@pytest.mark.parametrize("value", [{1}, b"bytes", Section, object()])
@pytest.mark.parametrize("held", [lambda x: x, lambda x: [x], lambda x: {"k": x}, Section])
def test_what_json_has_not_has_no_place_in_a_document(held: Any, value: object) -> None:
    with pytest.raises(TypeError, match="no place in a document"):
        canonical(held(value))
