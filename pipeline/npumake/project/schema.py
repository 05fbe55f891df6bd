"""Converts the dataclasses of `sections.py` to a JSON Schema, for validation and for editors.

    dataclass → object with named keys      Mapping[str, T] → object of T
    tuple[T, ...] → array of T              Literal → enum
    A | B → both types at once              Doc → description, minimum, maximum
    TypedDict → object, all keys required   Any → anything
    TypedDict, total=False → one of its keys, or the name of a key that needs no more
    Overlay → the whole schema again, nothing required and nothing by default

A union needs no `anyOf`: `items` applies only to arrays, `minimum` to numbers and `pattern` to
strings. The members' keywords are merged, and a wrong value violates exactly one of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NewType,
    Union,
    get_args,
    get_origin,
    is_typeddict,
)

from npumake.digest import Json, key_of, plain
from npumake.project.doc import Doc
from npumake.project.expand import TOP_LEVEL_ONLY
from npumake.project.hints import hints_of
from npumake.project.sections import Overlay, Sections, TargetOverlay

DRAFT = "https://json-schema.org/draft/2020-12/schema"

_OVERLAY = {"$ref": "#/$defs/overlay"}
_ONE_KEY = {"type": "object", "minProperties": 1, "maxProperties": 1}
_OVERLAYS: dict[Any, Json] = {
    Overlay: _OVERLAY,
    TargetOverlay: {**_ONE_KEY, "additionalProperties": _OVERLAY},
}
_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number", NoneType: "null"}


def schema_of(sections: type, title: str = "npumake project") -> Json:
    """The JSON Schema (draft 2020-12) of a YAML file whose keys are this dataclass.

    Raises TypeError for a field type that YAML cannot express.
    """
    whole = _of(sections, Doc(""))
    schema = {"$schema": DRAFT, "title": title, **whole}
    if sections is not Sections:
        return schema
    keys = {key: inner for key, inner in whole["properties"].items() if key not in TOP_LEVEL_ONLY}
    return {**schema, "$defs": {"overlay": _overlay({**whole, "properties": keys})}}


def editor_schema(targets: Sequence[str]) -> Json:
    """The schema of `project.yaml` for editors, which do not read a vendor's file beside it.
    Sections are required only without a `dialect`; `targets` are the names of all chips."""
    whole = schema_of(Sections)
    for keys in (whole["properties"], whole["$defs"]["overlay"]["properties"]):
        if "targets" in keys:
            keys["targets"] = {
                **keys["targets"],
                "items": _chips(keys["targets"]["items"], targets),
            }
    required = whole.pop("required")
    return {**whole, "anyOf": [{"required": required}, {"required": ["dialect", "config"]}]}


def _chips(item: Json, targets: Sequence[str]) -> Json:
    """An item of `targets`: a name, or an object whose one key is a name."""
    names = {"enum": list(targets)}
    inner = {key: value for key, value in item.items() if key != "type"}
    return {
        "anyOf": [
            {"type": "string", **names},
            {"type": "object", **inner, "propertyNames": names},
        ]
    }


def _overlay(schema: Json) -> Json:
    """The schema of an overlay of `schema`: nothing is required; lists are complete."""
    inner = {key: item for key, item in schema.items() if key not in ("required", "default")}
    if "properties" in inner:
        keys = inner["properties"]
        inner["properties"] = {name: _overlay(keys[name]) for name in keys}
    if isinstance(inner.get("additionalProperties"), dict):
        inner["additionalProperties"] = _overlay(inner["additionalProperties"])
    return inner


def _of(hint: Any, doc: Doc) -> dict[str, Json]:
    """The schema of one type; `doc` holds the limits of its numbers."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        inner, note = arguments
        return {"description": note.text, **_of(inner, note)}
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin in (Union, UnionType):
        return _either([_of(member, doc) for member in arguments])
    if origin is tuple and arguments[1:] == (...,):
        return {"type": "array", "items": _of(arguments[0], doc)}
    if origin is Mapping:
        return {"type": "object", "additionalProperties": _of(arguments[1], doc)}
    return _of_class(hint, doc)


def _of_class(hint: Any, doc: Doc) -> dict[str, Json]:
    if hint is Any:
        return {}
    if is_choice(hint):
        return _choice(hint)
    if hint in _OVERLAYS:
        return _OVERLAYS[hint]
    if is_typeddict(hint):
        return _document(hint)
    if is_dataclass(hint) and isinstance(hint, type):
        return _object(hint)
    if isinstance(hint, NewType):
        return {"type": "string", "minLength": 1}
    if hint not in _TYPES:
        raise TypeError(f"{hint} has no place in YAML")
    return {"type": _TYPES[hint], **(_limits(doc) if hint in (int, float) else {})}


def _limits(doc: Doc) -> dict[str, Json]:
    limits = {"minimum": doc.minimum, "maximum": doc.maximum}
    return {keyword: limit for keyword, limit in limits.items() if limit is not None}


def _either(members: list[dict[str, Json]]) -> dict[str, Json]:
    if members[1:] == [{"type": "null"}] and "enum" in members[0]:
        return {"enum": [*members[0]["enum"], None]}
    members = [_worded(member) for member in members]
    types = [member.get("type") for member in members]
    if None in types or len(set(types)) < len(types):
        raise TypeError(f"the value fits several of these: {members}")
    merged = {keyword: limit for member in members for keyword, limit in member.items()}
    return {**merged, "type": types}


def _worded(member: dict[str, Json]) -> dict[str, Json]:
    """A Literal of words as a pattern, because `enum` would apply to the other members too."""
    words = member.get("enum", [])
    if not words or not all(isinstance(word, str) for word in words):
        return member
    return {"type": "string", "pattern": f"^({'|'.join(words)})$"}


def _object(section: type) -> dict[str, Json]:
    hints = hints_of(section, with_docs=True)
    keys = fields(section)
    required = [key_of(key) for key in keys if _default(key) is MISSING]
    return {
        "type": "object",
        "properties": {key_of(key): _property(key, hints[key.name]) for key in keys},
        "additionalProperties": False,
        **({"required": required} if required else {}),
    }


def _document(document: type) -> dict[str, Json]:
    hints = hints_of(document, with_docs=True)
    return {
        "type": "object",
        "properties": {name: _of(hint, Doc("")) for name, hint in hints.items()},
        "additionalProperties": False,
        "required": list(hints),
    }


def is_choice(hint: Any) -> bool:
    """Whether the hint is a TypedDict whose values have exactly one key."""
    return is_typeddict(hint) and not hint.__total__


def _choice(choice: type) -> dict[str, Json]:
    hints = hints_of(choice, with_docs=True)
    properties = {name: _of(hint, Doc("")) for name, hint in hints.items()}
    alone = [name for name, inner in properties.items() if "required" not in inner]
    return {
        "type": ["object", "string"],
        "properties": properties,
        "additionalProperties": False,
        "minProperties": 1,
        "maxProperties": 1,
        "pattern": f"^({'|'.join(alone)})$",
    }


def _property(key: Field[Any], hint: Any) -> dict[str, Json]:
    default = _default(key)
    return {
        **_of(hint, Doc("")),
        **({} if default is MISSING else {"default": plain(default)}),
    }


def _default(key: Field[Any]) -> Any:
    return key.default if key.default_factory is MISSING else key.default_factory()
