"""A vendor's YAML, key by key: what each key may hold, and what is said about it.

A vendor's file is groups of keys; a table of `Key` says what each may hold. A list is one text,
its items divided by `;`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from pipeline.digest import Json
from pipeline.errors import ProjectError, did_you_mean
from pipeline.project.document import Document, Spot
from pipeline.project.vendor import Note


@dataclass(frozen=True)
class Key:
    """What a key may hold: a text, unless it holds a flag, a number, or a mapping."""

    allowed: tuple[str, ...] = ()  # of a text, or of each item of a list
    many: bool = False  # a list
    needed: bool = False
    holds: type = str
    default: Json = None


@dataclass(frozen=True)
class Vendor:
    """A vendor's document under its table of keys, `group.key`. An empty value is no value."""

    document: Document
    keys: Mapping[str, Key]
    base: str = ""  # where its relative paths start, as the project sees it
    strict: bool = False  # a flag in quotes is none

    def given(self, key: str) -> Json:
        """The value as written; None when it is not there or empty."""
        group, _, name = key.partition(".")
        found = (self.document.data.get(group) or {}).get(name)
        is_blank = isinstance(found, str) and not found.strip("; \t\n")
        return None if is_blank or found in ({}, []) else found

    def value(self, key: str) -> Json:
        """The value, else the default. A flag in quotes is a flag."""
        found = self.given(key)
        if found is None:
            return self.keys[key].default
        if self.keys[key].holds is bool and isinstance(found, str):
            return found.strip().lower() == "true"
        return found

    def text(self, key: str) -> str:
        found = self.value(key)
        return "" if found is None else str(found).strip()

    def items(self, key: str) -> tuple[str, ...]:
        """The items of a `;` list: none where there is no value."""
        parts = [part.strip() for part in self.text(key).removesuffix(";").split(";")]
        return tuple(parts) if parts != [""] else ()

    def path(self, text: str) -> str:
        """A path of the vendor's file as the project sees it."""
        return PurePosixPath(self.base, text).as_posix()

    def spot(self, key: str) -> Spot:
        """Where the key is written; where it is not, its group."""
        group, _, name = key.partition(".")
        places = self.document.places
        return places.get((group, name), places.get((group,), places[()]))

    def error(self, key: str, what: str, hint: str = "") -> ProjectError:
        return ProjectError(what, self.spot(key).value, hint)

    def written(self) -> Iterator[str]:
        """Every `group.key` that has a value, in the order of the file."""
        for group, inside in self.document.data.items():
            keys = (f"{group}.{name}" for name in inside or {})
            yield from (key for key in keys if self.given(key) is not None)


def check_keys(vendor: Vendor, groups: tuple[str, ...], open_groups: tuple[str, ...] = ()) -> None:
    """Raises the first ProjectError: an unknown group, key or value, or keys that are missing.

    `groups` must be there; in `open_groups` the vendor lets unknown keys pass.
    """
    known = {key.partition(".")[0] for key in vendor.keys}
    top = vendor.document
    if not isinstance(top.data, dict):
        raise ProjectError("the file must be groups of keys", top.places[()].key)
    for group, inside in top.data.items():
        place = top.places[group,].key
        if group not in known:
            raise ProjectError(f"unknown group `{group}`", place, did_you_mean(group, known))
        if not isinstance(inside, dict | None):
            raise ProjectError(f"`{group}` must be a mapping of keys", top.places[group,].value)
        for name in inside or {}:
            _check_key(vendor, f"{group}.{name}", strict=group not in open_groups)
    _check_missing(vendor, groups)


def _check_key(vendor: Vendor, key: str, strict: bool) -> None:
    group, _, name = key.partition(".")
    if key not in vendor.keys:
        names = [known.partition(".")[2] for known in vendor.keys if known.startswith(f"{group}.")]
        if strict:
            place = vendor.spot(key).key
            raise ProjectError(f"unknown key `{name}`", place, did_you_mean(name, names))
        return
    if vendor.given(key) is not None:
        _check_value(vendor, key, name, vendor.given(key))


def _check_value(vendor: Vendor, key: str, name: str, value: Json) -> None:
    asked = vendor.keys[key]
    if asked.holds is bool and not _is_flag(value, vendor.strict):
        raise vendor.error(key, f"`{name}` must be True or False, not {value}")
    if asked.holds in (str, int, float) and isinstance(value, dict | list | bool):
        raise vendor.error(key, f"`{name}` must be a text", "divide several values by `;`")
    for item in vendor.items(key) if asked.many else (vendor.text(key),):
        if asked.allowed and item not in asked.allowed:
            hint = "allowed: " + ", ".join(asked.allowed)
            raise vendor.error(key, f"`{name}` cannot be `{item}`", hint)


def _is_flag(value: Json, strict: bool) -> bool:
    return isinstance(value, bool) if strict else str(value).strip().lower() in ("true", "false")


def _check_missing(vendor: Vendor, groups: tuple[str, ...]) -> None:
    for group in groups:
        if not vendor.document.data.get(group):
            hint = "these groups must be there: " + ", ".join(groups)
            raise ProjectError(f"missing group `{group}`", vendor.spot(f"{group}.").key, hint)
        refuse_missing(
            vendor,
            group,
            [
                key.partition(".")[2]
                for key, asked in vendor.keys.items()
                if asked.needed and key.startswith(f"{group}.") and vendor.given(key) is None
            ],
        )


def refuse_missing(vendor: Vendor, group: str, names: list[str]) -> None:
    """Raises ProjectError, in the vendor's words, where there are any."""
    if names:
        quoted = ", ".join(f"'{name}'" for name in names)
        place = vendor.document.places.get((group,), vendor.document.places[()]).key
        raise ProjectError(f"Missing keys: {quoted}", place, f"add them to `{group}`")


def notes_of(vendor: Vendor, ignored: Mapping[str, str]) -> tuple[Note, ...]:
    """A note for every key that is ignored though it asks for something else than the default."""
    return tuple(
        Note(f"`{key.partition('.')[2]}` is ignored: {ignored[key]}", vendor.spot(key).value)
        for key in vendor.written()
        if key in ignored and vendor.value(key) != vendor.keys[key].default
    )
