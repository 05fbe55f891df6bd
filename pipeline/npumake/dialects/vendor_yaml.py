"""A vendor's YAML: typed access to its keys, checks and notes.

The file consists of groups of keys; a table of `VendorKey` defines the allowed values. A list is a
YAML list, or one text with items separated by `;`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from npumake.digest import Json
from npumake.errors import ProjectError, did_you_mean
from npumake.project.document import Document, RoutePlace
from npumake.project.vendor import Note

TYPES: Mapping[type, tuple[str, ...]] = {
    bool: ("boolean", "string", "integer"),
    dict: ("string", "object"),
    float: ("number",),
    int: ("integer",),
    list: ("string",),
    str: ("string",),
}
NUMBER = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")
FLAGS = {"true": True, "1": True, "false": False, "0": False}


@dataclass(frozen=True)
class VendorKey:
    """The values of one key: a text by default, else a flag, a number or a mapping."""

    allowed: tuple[str, ...] = ()  # values of a text, or of each item of a list
    many: bool = False  # whether the value is a list
    needed: bool = False
    holds: type = str
    default: Json = None
    divider: str = ""  # between the numbers of one item, which may also be a YAML list
    documented: tuple[str, ...] = ()  # JSON types in the vendor's schema; default: those of `holds`

    @property
    def types(self) -> tuple[str, ...]:
        """The JSON types that the vendor's schema accepts."""
        return self.documented or TYPES[self.holds]


@dataclass(frozen=True)
class VendorYaml:
    """A vendor's document with its table of keys, `group.key`. An empty value counts as absent."""

    document: Document
    keys: Mapping[str, VendorKey]
    base: str = ""  # folder of its relative paths, relative to the project

    def raw_value(self, key: str) -> Json:
        """The value as written in the file; None if it is absent or empty."""
        group, _, name = key.partition(".")
        value = (self.document.data.get(group) or {}).get(name)
        return None if _is_blank(value, self.keys.get(key)) else value

    def value(self, key: str) -> Json:
        """The value, or the default. A quoted flag counts as a flag."""
        raw = self.raw_value(key)
        if raw is None:
            return self.keys[key].default
        if self.keys[key].holds is bool:
            return FLAGS.get(str(raw).strip().lower(), raw)
        return raw

    def text(self, key: str) -> str:
        value = self.value(key)
        if isinstance(value, list) and self.keys[key].many:
            return ";".join(self.items(key))
        return "" if value is None else str(value).strip()

    def items(self, key: str) -> tuple[str, ...]:
        """The items of a `;` list or a YAML list; none without a value."""
        value = self.value(key)
        if isinstance(value, list):
            return _list_items(value, self.keys[key].divider)
        parts = [part.strip() for part in self.text(key).removesuffix(";").split(";")]
        return tuple(parts) if parts != [""] else ()

    def path(self, text: str) -> str:
        """A path of the vendor's file, relative to the project."""
        return PurePosixPath(self.base, text).as_posix()

    def spot(self, key: str) -> RoutePlace:
        """The place of the key, or of its group if the key is absent."""
        group, _, name = key.partition(".")
        places = self.document.places
        return places.get((group, name), places.get((group,), places[()]))

    def error(self, key: str, what: str, hint: str = "") -> ProjectError:
        return ProjectError(what, self.spot(key).value, hint)

    def keys_with_values(self) -> Iterator[str]:
        """Every `group.key` that has a value, in the order of the file."""
        for group, inside in self.document.data.items():
            keys = (f"{group}.{name}" for name in inside or {})
            yield from (key for key in keys if self.raw_value(key) is not None)


def _is_blank(value: Json, key: VendorKey | None) -> bool:
    """YAML reads `None` as a text; for a number it means no value."""
    if isinstance(value, str):
        is_number = key is not None and key.holds in (int, float) and "string" not in key.types
        return not value.strip("; \t\n") or (is_number and value.strip() == "None")
    return value is None or value in ({}, [])


def _list_items(values: list[Json], divider: str) -> tuple[str, ...]:
    """The items of a YAML list; the numbers of one item may form an inner list."""
    if divider and all(isinstance(value, int | float) for value in values):
        values = [values]
    inner = (value if isinstance(value, list) else [value] for value in values)
    words = ((str(word).strip() for word in item_words if word is not None) for item_words in inner)
    return tuple(divider.join(item) for item in words)


def check_keys(
    vendor: VendorYaml, groups: tuple[str, ...], open_groups: tuple[str, ...] = ()
) -> None:
    """Raises the first ProjectError: an unknown group, key or value, or a missing key.

    `groups` are required; the vendor accepts unknown keys in `open_groups`.
    """
    known_groups = {key.partition(".")[0] for key in vendor.keys}
    top = vendor.document
    if not isinstance(top.data, dict):
        raise ProjectError("the file must be groups of keys", top.places[()].key)
    for group, inside in top.data.items():
        place = top.places[group,].key
        if group not in known_groups:
            raise ProjectError(f"unknown group `{group}`", place, did_you_mean(group, known_groups))
        if not isinstance(inside, dict | None):
            raise ProjectError(f"`{group}` must be a mapping of keys", top.places[group,].value)
        for name in inside or {}:
            _check_key(vendor, f"{group}.{name}", strict=group not in open_groups)
    _check_missing(vendor, groups)


def _check_key(vendor: VendorYaml, key: str, strict: bool) -> None:
    group, _, name = key.partition(".")
    if key not in vendor.keys:
        names = [
            name_of_key.partition(".")[2]
            for name_of_key in vendor.keys
            if name_of_key.startswith(f"{group}.")
        ]
        if strict:
            place = vendor.spot(key).key
            raise ProjectError(f"unknown key `{name}`", place, did_you_mean(name, names))
        return
    if vendor.raw_value(key) is not None:
        _check_value(vendor, key, name, vendor.raw_value(key))


def _check_value(vendor: VendorYaml, key: str, name: str, value: Json) -> None:
    rule = vendor.keys[key]
    if rule.holds is bool and not _is_flag(value, rule):
        raise vendor.error(key, f"`{name}` must be True or False, not {value}")
    if isinstance(value, list) and rule.many:
        _check_list(vendor, key, name, value)
    elif rule.holds in (str, int, float) and isinstance(value, dict | list | bool):
        raise vendor.error(key, f"`{name}` must be a text", "divide several values by `;`")
    elif rule.holds in (int, float) and not _is_number(value, rule):
        raise vendor.error(key, f"`{name}` must be a number, not {value}")
    for item in vendor.items(key) if rule.many else (vendor.text(key),):
        if rule.allowed and item not in rule.allowed:
            hint = "allowed: " + ", ".join(rule.allowed)
            raise vendor.error(key, f"`{name}` cannot be `{item}`", hint)


def _check_list(vendor: VendorYaml, key: str, name: str, values: list[Json]) -> None:
    """Raises ProjectError unless the values are a list of items."""
    for value in values:
        inner = value if isinstance(value, list) and vendor.keys[key].divider else [value]
        if any(isinstance(word, dict | list | bool) for word in inner):
            raise vendor.error(key, f"`{name}` must be a list of texts", "or divide them by `;`")


def _is_flag(value: Json, rule: VendorKey) -> bool:
    if isinstance(value, bool):
        return True
    return "string" in rule.types and str(value).strip().lower() in FLAGS


def _is_number(value: Json, rule: VendorKey) -> bool:
    if isinstance(value, str):
        return "string" in rule.types or NUMBER.fullmatch(value.strip()) is not None
    return isinstance(value, int) or rule.holds is float


def _check_missing(vendor: VendorYaml, groups: tuple[str, ...]) -> None:
    for group in groups:
        if not vendor.document.data.get(group):
            hint = "these groups must be there: " + ", ".join(groups)
            raise ProjectError(f"missing group `{group}`", vendor.spot(f"{group}.").key, hint)
        refuse_missing(
            vendor,
            group,
            [
                key.partition(".")[2]
                for key, rule in vendor.keys.items()
                if rule.needed and key.startswith(f"{group}.") and vendor.raw_value(key) is None
            ],
        )


def refuse_missing(vendor: VendorYaml, group: str, names: list[str]) -> None:
    """Raises ProjectError in the vendor's words, if `names` are missing."""
    if names:
        quoted = ", ".join(f"'{name}'" for name in names)
        place = vendor.document.places.get((group,), vendor.document.places[()]).key
        raise ProjectError(f"Missing keys: {quoted}", place, f"add them to `{group}`")


def notes_of(vendor: VendorYaml, ignored: Mapping[str, str]) -> tuple[Note, ...]:
    """A note for every ignored key with a non-default value."""
    return tuple(
        Note(f"`{key.partition('.')[2]}` is ignored: {ignored[key]}", vendor.spot(key).value)
        for key in vendor.keys_with_values()
        if key in ignored and vendor.value(key) != vendor.keys[key].default
    )


def type_notes(vendor: VendorYaml) -> tuple[Note, ...]:
    """A note for every valid value whose type the vendor's schema does not accept."""
    notes = []
    for key in vendor.keys_with_values():
        rule = vendor.keys.get(key)
        kind = _kind(vendor.raw_value(key))
        if rule is None or kind in _accepted_types(rule):
            continue
        message = f"`{key.partition('.')[2]}` is of type {kind}, the vendor's schema takes "
        notes.append(Note(message + ", ".join(rule.types), vendor.spot(key).value))
    return tuple(notes)


def _kind(value: Json) -> str:
    """The JSON type of a value."""
    if isinstance(value, bool):
        return "boolean"
    kinds = {int: "integer", float: "number", str: "string", dict: "object", list: "array"}
    return kinds.get(type(value), "null")


def _accepted_types(rule: VendorKey) -> tuple[str, ...]:
    """The JSON types of a key, and those that YAML converts to them, such as a number to a text."""
    numbers = ("integer", "number") if "string" in rule.types else ()
    wider = ("integer",) if "number" in rule.types else ()
    arrays = ("array",) if rule.many or rule.holds is list else ()
    return (*rule.types, *numbers, *wider, *arrays)


def unknown_notes(vendor: VendorYaml, groups: tuple[str, ...]) -> tuple[Note, ...]:
    """A note for every unknown key in `groups`, if the vendor accepts it."""
    return tuple(
        Note(f"`{key.partition('.')[2]}` is ignored: no key of this tool", vendor.spot(key).key)
        for key in vendor.keys_with_values()
        if key not in vendor.keys and key.partition(".")[0] in groups
    )
