"""Checks a document against a schema: one error per cause, at its place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import Any

from npumake.digest import Json
from npumake.errors import ProjectError, did_you_mean
from npumake.late import when_used
from npumake.project.document import Document, Route
from npumake.project.fits import fits

with when_used("jsonschema"):  # it takes longer to load than a project to plan
    import jsonschema

Violation = Any  # a jsonschema ValidationError, whose stubs leave every field open

_SINGULAR = {
    "string": "a string",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "object": "a mapping",
    "array": "a list",
}
_PLURAL = {
    "string": "names",
    "integer": "whole numbers",
    "number": "numbers",
    "boolean": "true or false",
    "object": "mappings",
    "array": "lists",
}
# A shape as other tools write it: 1x3x224x224 or 1,3,224,224.
_SHAPE = re.compile(r"[0-9]+(?:[x,; ]+[0-9]+)+")
_SHAPE_DIVIDERS = re.compile("[x,; ]+")


def check(document: Document, schema: Json) -> None:
    """Raises the first ProjectError in the document, if any."""
    if fits(document.data, schema):
        return
    for mistake in mistakes(document, schema):
        raise mistake


def mistakes(document: Document, schema: Json) -> tuple[ProjectError, ...]:
    """All violations of `schema`, in the order of the text.

    Missing keys come last. A mapping with an unknown key gets no error for missing keys: the
    unknown key is most often a misspelling of them.
    """
    errors = list(jsonschema.Draft202012Validator(schema).iter_errors(document.data))
    order = {route: number for number, route in enumerate(document.places)}
    strange = {tuple(e.path) for e in errors if e.validator == "additionalProperties"}
    entries: list[tuple[bool, int, ProjectError]] = []
    for error in errors:
        route, lacks = tuple(error.path), error.validator == "required"
        if lacks and route in strange:
            continue
        entries += [(lacks, order[at], mistake) for at, mistake in _mistakes(error, document)]
    unique = {str(mistake): (lacks, at, mistake) for lacks, at, mistake in entries}
    return tuple(mistake for *_, mistake in sorted(unique.values(), key=lambda item: item[:2]))


def _mistakes(error: Violation, document: Document) -> Iterator[tuple[Route, ProjectError]]:
    route: Route = tuple(error.path)
    spot = document.places[route]
    match error.validator:
        case "additionalProperties":
            properties = error.schema["properties"]
            for key in error.instance:
                if key not in properties:
                    at = (*route, key)
                    hint = _home(key, properties) if not route else ""
                    hint = hint or did_you_mean(key, properties)
                    message = f"unknown key `{key}`"
                    yield at, ProjectError(message, document.places[at].key, hint)
        case "required":
            for key in error.validator_value:
                if key not in error.instance:
                    hint = error.schema["properties"][key].get("description", "")
                    message = f"missing key `{dotted((*route, key))}`"
                    yield route, ProjectError(message, spot.key, hint)
        case _:
            message, hint = _wrong_value(error)
            yield route, ProjectError(f"{_subject(route)} {message}", spot.value, hint)


def _home(key: str, sections: Json) -> str:
    """A hint for a top-level key that belongs to a section: its indentation is missing."""
    homes = [name for name, inner in sections.items() if key in inner.get("properties", {})]
    return f"it belongs below `{homes[0]}:`, indented" if homes else ""


def dotted(route: Route) -> str:
    """A route as text: `inputs.image.mean.0`."""
    return ".".join(map(str, route))


def _subject(route: Route) -> str:
    return f"`{dotted(route)}`" if route else "the file"


def _wrong_value(error: Violation) -> tuple[str, str]:
    """The error of the value, and a hint."""
    value, limit = error.instance, error.validator_value
    match error.validator:
        case "type":
            hint = _remedy(value, limit) or _written_out(error.schema)
            return f"must be {_expected(error.schema)}, not {_kind_of(value)}", hint
        case "enum":
            return f"cannot be {_quoted(value)}", "allowed: " + ", ".join(_nearest(value, limit))
        case "minimum":
            return f"must be at least {limit:g}, not {value}", ""
        case "maximum":
            return f"must be at most {limit:g}, not {value}", ""
        case "pattern":
            return _unnamed(value, error.schema)
        case "minProperties" | "maxProperties":
            return f"must have one key, not {len(value)}", _apart(error.schema)
        case "minLength":
            return "must not be empty", ""
    raise AssertionError(f"schema.py writes no `{error.validator}`")


def _unnamed(name: str, schema: Json) -> tuple[str, str]:
    """The error for a bare name that is unknown or needs arguments."""
    properties = schema.get("properties")
    if properties is None:
        words = schema["pattern"].strip("^$()").split("|")
        return f"cannot be `{name}`", f"allowed: {', '.join(words)}, or a whole number"
    if name not in properties:
        return f"cannot be `{name}`", did_you_mean(name, properties)
    required = properties[name]["required"]
    return f"is `{name}` without arguments", f"write {{{name}: {{{required[0]}: ...}}}}"


def _expected(schema: Json) -> str:
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    return " or ".join(_singular(kind, schema) for kind in kinds if kind != "null")


def _singular(kind: str, schema: Json) -> str:
    of = schema["items"].get("type", []) if kind == "array" else []
    kinds = [of] if isinstance(of, str) else of
    many = " or ".join(_PLURAL[kind] for kind in kinds if kind != "null")
    return f"{_SINGULAR[kind]} of {many}" if many else _SINGULAR[kind]


def _kind_of(value: Json) -> str:
    if value is None:
        return "empty"
    if isinstance(value, str | dict | list):
        return {str: "a string", dict: "a mapping", list: "a list"}[type(value)]
    return _quoted(value)


def _remedy(value: Json, types: str | list[str]) -> str:
    kinds = [types] if isinstance(types, str) else types
    if value is None:
        return "give it a value, or remove the key"
    if "array" in kinds and "number" not in kinds and not isinstance(value, dict):
        return f"write [{_SHAPE_DIVIDERS.sub(', ', value) if _is_shape(value) else value}]"
    if isinstance(value, str) and {"integer", "number"} & set(kinds):
        return "a number has no quotes, underscores, units or leading zeros: 1000, 0.5, 1e-3"
    return ""


def _is_shape(value: Json) -> bool:
    return isinstance(value, str) and _SHAPE.fullmatch(value) is not None


def _written_out(schema: Json) -> str:
    """A hint with the keys that the mapping requires, or else allows."""
    needed, properties = schema.get("required", []), schema.get("properties", {})
    if needed:
        return f"write {{{', '.join(f'{key}: ...' for key in needed)}}}"
    return did_you_mean("", properties) if properties else ""


def _nearest(value: Json, allowed: list[Json]) -> list[str]:
    """The allowed values, most similar first, else in schema order."""

    def likeness(choice: Json) -> float:
        return SequenceMatcher(None, str(value).lower(), str(choice).lower()).ratio()

    named = [choice for choice in allowed if choice is not None]
    return [_quoted(choice) for choice in sorted(named, key=likeness, reverse=True)]


def _quoted(value: Json) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "empty" if value is None else f"`{value}`"


def _apart(schema: Json) -> str:
    """A hint for several keys instead of one."""
    if "properties" in schema:
        return "write one step per line, each behind its own `-`"
    return "indent its content further"
