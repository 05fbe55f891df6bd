"""Strict reading of untrusted JSON, with typed access to its keys."""

from __future__ import annotations

import json
import math
import reprlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from npumake.digest import Json
from npumake.errors import ProjectError

MAX_JSON_BYTES = 1 << 24  # bytes of text

Kind = tuple[str, Callable[[Json], bool]]  # description, test


def _whole(value: Json) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _number(value: Json) -> bool:
    return _whole(value) or (isinstance(value, float) and math.isfinite(value))


def _list_of(test: Callable[[Json], bool]) -> Callable[[Json], bool]:
    return lambda value: isinstance(value, list) and all(map(test, value))


TEXT: Kind = ("a text", lambda value: isinstance(value, str))
FLAG: Kind = ("true or false", lambda value: isinstance(value, bool))
WHOLE: Kind = ("a whole number", _whole)
NUMBER: Kind = ("a number", _number)
TEXTS: Kind = ("a list of texts", _list_of(TEXT[1]))
SIZES: Kind = ("a list of sizes", _list_of(lambda value: _whole(value) and 0 < value < 1 << 31))
WHOLES: Kind = ("a whole number or a list of them", lambda v: _whole(v) or _list_of(_whole)(v))
NUMBERS: Kind = ("a number or a list of them", lambda v: _number(v) or _list_of(_number)(v))
OBJECT: Kind = ("an object", lambda value: isinstance(value, dict))
OBJECTS: Kind = ("a list of objects", _list_of(OBJECT[1]))
LIST: Kind = ("a list", lambda value: isinstance(value, list))
TEXT_OR_OBJECT: Kind = ("a text or an object", lambda value: isinstance(value, str | dict))


def one_of(*words: str) -> Kind:
    return (f"one of {', '.join(words)}", lambda value: value in words)


@dataclass(frozen=True)
class MetadataEntry:
    """One JSON object and its place, such as `edgefirst.json: outputs.0`. null counts as absent."""

    data: Mapping[str, Json]
    where: str

    def get(self, key: str, kind: Kind, default: Json = None) -> Json:
        """The value of the key, or `default`. Raises ProjectError for another kind."""
        value = self.data.get(key)
        if value is None:
            return default
        words, test = kind
        if not test(value):
            hint = f"it is {reprlib.repr(value)}"
            raise ProjectError(f"`{key}` must be {words}", self.below(key), hint)
        return value

    def need(self, key: str, kind: Kind) -> Json:
        """As `get`, for a required key."""
        if self.data.get(key) is None:
            raise ProjectError(f"`{key}` is missing", self.where, f"add it: {kind[0]}")
        return self.get(key, kind)

    def entry(self, key: str) -> MetadataEntry:
        """The object at `key`, or an empty one."""
        return MetadataEntry(self.get(key, OBJECT, {}), self.below(key))

    def entries(self, key: str) -> tuple[MetadataEntry, ...]:
        items = self.get(key, OBJECTS, [])
        return tuple(MetadataEntry(item, f"{self.below(key)}.{n}") for n, item in enumerate(items))

    def below(self, key: str) -> str:
        return f"{self.where}{'.' if ': ' in self.where else ': '}{key}"


def read_object(data: str | bytes, name: str) -> dict[str, Json]:
    """The one JSON object in `data`. Raises ProjectError for anything else."""
    document = read_json(data, name)
    if not isinstance(document, dict):
        raise ProjectError("the JSON must be an object", name, "write it between { and }")
    return document


def read_json(data: str | bytes, name: str) -> Json:
    """The JSON value in `data`. Raises ProjectError for text that is not JSON or not UTF-8, too
    large or too deep, for a duplicate key, and for NaN."""
    if len(data) > MAX_JSON_BYTES:
        hint = "metadata hold no weights and no samples"
        raise ProjectError(f"more than {MAX_JSON_BYTES} bytes of JSON", name, hint)
    try:
        return json.loads(data, object_pairs_hook=_once, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        hint = "JSON is UTF-8, with each key once and without NaN"
        raise ProjectError(f"not readable JSON: {error}", name, hint) from error


def _once(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    items = dict(pairs)
    if len(items) < len(pairs):
        raise ValueError("a key is written twice")
    return items


def _no_number(word: str) -> Json:
    raise ValueError(f"{word} is not a number")
