"""A fast check whether a value fits a schema.

It supports the keywords that schema.py writes. It returns False for other keywords and for doubtful
cases; then `check` runs jsonschema, which also finds the errors.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from npumake.digest import Json

Test = Callable[[Json, Json, Json, Json], bool]  # value, limit, the schema it stands in, the whole

_SAYS_NOTHING = frozenset({"$defs", "$schema", "default", "description", "title"})
_KINDS: Mapping[str, type | tuple[type, ...]] = {
    "array": list,
    "boolean": bool,
    "integer": int,
    "null": type(None),
    "number": (int, float),
    "object": dict,
    "string": str,
}


def fits(value: Json, schema: Json, whole: Json = None) -> bool:
    """Whether `value` surely fits. `whole` is the root schema for `$ref`, by default `schema`."""
    whole = whole or schema
    return all(
        keyword in _SAYS_NOTHING
        or (keyword in _TESTS and _TESTS[keyword](value, limit, schema, whole))
        for keyword, limit in schema.items()
    )


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is(value: Json, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    whole = kind == "integer" and isinstance(value, float) and value.is_integer()
    return whole or isinstance(value, _KINDS[kind])


def _type(value: Json, limit: Json, schema: Json, whole: Json) -> bool:
    return any(_is(value, kind) for kind in ([limit] if isinstance(limit, str) else limit))


def _enum(value: Json, limit: Json, schema: Json, whole: Json) -> bool:
    return any(type(value) is type(choice) and value == choice for choice in limit)


def _minimum(value: Json, limit: Json, schema: Json, whole: Json) -> bool:
    return not _is_number(value) or value >= limit


def _maximum(value: Json, limit: Json, schema: Json, whole: Json) -> bool:
    return not _is_number(value) or value <= limit


def _min_length(value: Json, limit: Json, schema: Json, whole: Json) -> bool:
    return not isinstance(value, str) or len(value) >= limit


def _pattern(value: Json, limit: Json, schema: Json, whole: Json) -> bool:
    return not isinstance(value, str) or re.search(limit, value) is not None


def _min_properties(value: Json, limit: Json, schema: Json, whole: Json) -> bool:
    return not isinstance(value, dict) or len(value) >= limit


def _max_properties(value: Json, limit: Json, schema: Json, whole: Json) -> bool:
    return not isinstance(value, dict) or len(value) <= limit


def _required(value: Json, limit: Json, schema: Json, whole: Json) -> bool:
    return not isinstance(value, dict) or all(key in value for key in limit)


def _properties(value: Json, limit: Json, schema: Json, whole: Json) -> bool:
    if not isinstance(value, dict):
        return True
    return all(fits(value[key], limit[key], whole) for key in value if key in limit)


def _additional(value: Json, limit: Json, schema: Json, whole: Json) -> bool:
    if not isinstance(value, dict):
        return True
    others = [item for key, item in value.items() if key not in schema.get("properties", {})]
    return not others if limit is False else all(fits(item, limit, whole) for item in others)


def _items(value: Json, limit: Json, schema: Json, whole: Json) -> bool:
    return not isinstance(value, list) or all(fits(item, limit, whole) for item in value)


def _ref(value: Json, limit: Json, schema: Json, whole: Json) -> bool:
    target = whole
    for part in limit.removeprefix("#/").split("/"):
        target = target[part]
    return fits(value, target, whole)


_TESTS: Mapping[str, Test] = {
    "$ref": _ref,
    "additionalProperties": _additional,
    "enum": _enum,
    "items": _items,
    "maxProperties": _max_properties,
    "maximum": _maximum,
    "minLength": _min_length,
    "minProperties": _min_properties,
    "minimum": _minimum,
    "pattern": _pattern,
    "properties": _properties,
    "required": _required,
    "type": _type,
}
