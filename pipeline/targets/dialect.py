"""A vendor's YAML, key by key: what is asked of it, and the native document that it becomes.

A vendor's file is groups of keys. A table of `Key` says what each may hold; what is translated is
put into a `Native` document beside the place it came from. A list is one text, its items divided
by `;`, one per input of the model in the order of `input_name`.
"""

from __future__ import annotations

import glob
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from pipeline.digest import Json
from pipeline.errors import Place, ProjectError, did_you_mean
from pipeline.project.document import Document, Route, Spot
from pipeline.project.vendor import Note, routes


@dataclass(frozen=True)
class Key:
    """What a key may hold: a text, unless it holds a flag, a number, or a mapping."""

    allowed: tuple[str, ...] = ()  # of a text, or of each item of a list
    needed: bool = False
    holds: type = str
    default: Json = None


@dataclass(frozen=True)
class Vendor:
    """A vendor's document under its table of keys, `group.key`. An empty value is no value."""

    document: Document
    keys: Mapping[str, Key]
    base: str = ""  # where its relative paths start, as the project sees it

    def given(self, key: str) -> Json:
        """The value as written; None when it is not there or empty."""
        group, _, name = key.partition(".")
        found = (self.document.data.get(group) or {}).get(name)
        return None if found in ("", {}, []) else found

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


@dataclass(frozen=True)
class Native:
    """A native document in the making. Whatever is put is placed where the vendor wrote it."""

    top: Document
    data: dict[str, Json] = field(default_factory=dict)
    places: dict[Route, Spot] = field(default_factory=dict)

    def put(self, route: tuple[str, ...], value: Json, spot: Spot) -> None:
        """`value` at `route`, a way of mappings that is made where it is not there yet."""
        inside = self.data
        for depth, name in enumerate(route[:-1]):
            inside = inside.setdefault(name, {})
            self.places.setdefault(route[: depth + 1], Spot(spot.key, spot.key))
        inside[route[-1]] = value
        self.places.update({(*route, *below): spot for below in routes(value)})

    def document(self) -> Document:
        places = {(): self.top.places[()], **self.places}
        return Document(self.top.path, self.data, {r: places[r] for r in routes(self.data)})


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
    if asked.holds is bool and str(value).strip().lower() not in ("true", "false"):
        raise vendor.error(key, f"`{name}` must be True or False, not {value}")
    if asked.holds in (str, int, float) and isinstance(value, dict | list | bool):
        raise vendor.error(key, f"`{name}` must be a text", "divide several values by `;`")
    for item in vendor.items(key) if asked.allowed else ():
        if item not in asked.allowed:
            hint = "allowed: " + ", ".join(asked.allowed)
            raise vendor.error(key, f"`{name}` cannot be `{item}`", hint)


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


def refuse_absent(vendor: Vendor, absent: Mapping[str, str]) -> None:
    """Raises ProjectError for a key whose meaning is not there yet, where it has an effect."""
    for key in vendor.written():
        if key in absent and vendor.value(key) != vendor.keys[key].default:
            name = key.partition(".")[2]
            raise vendor.error(key, f"`{name}` is not there yet: {absent[key]}", "leave it out")


def notes_of(vendor: Vendor, ignored: Mapping[str, str]) -> tuple[Note, ...]:
    """A note for every key that is ignored though it asks for something else than the default."""
    return tuple(
        Note(f"`{key.partition('.')[2]}` is ignored: {ignored[key]}", vendor.spot(key).value)
        for key in vendor.written()
        if key in ignored and vendor.value(key) != vendor.keys[key].default
    )


def input_names(vendor: Vendor, lists: tuple[str, ...]) -> tuple[str, ...]:
    """The inputs by name; `*` for the one input of a model whose file names none.

    Raises ProjectError for a name written twice, and for several values without names.
    """
    names = vendor.items("input_parameters.input_name")
    for name in names:
        if names.count(name) > 1:
            raise vendor.error("input_parameters.input_name", f"input `{name}` is written twice")
    for key in lists if not names else ():
        if len(vendor.items(key)) > 1:
            what = f"`{key.partition('.')[2]}` speaks of {len(vendor.items(key))} inputs"
            raise vendor.error(key, what, "name them in `input_name`, in the same order")
    return names or ("*",)


def per_input(vendor: Vendor, key: str, count: int) -> tuple[str, ...]:
    """One item per input; empty texts where there is no value. Raises ProjectError."""
    items = vendor.items(key) or ("",) * count
    if len(items) != count:
        name = key.partition(".")[2]
        what = f"wrong number of `{name}`: given {len(items)}, the model has {count} inputs"
        raise vendor.error(key, what, "one value per input, divided by `;`")
    return items


@dataclass(frozen=True)
class InputSite:
    """One input of the model: its items of the vendor's lists, and where its native keys go."""

    vendor: Vendor
    native: Native
    names: tuple[str, ...]
    index: int

    @property
    def name(self) -> str:
        return self.names[self.index]

    def item(self, key: str) -> str:
        """Empty where there is no value. Raises ProjectError for another number of items."""
        return per_input(self.vendor, key, len(self.names))[self.index]

    def put(self, section: str, name: str, value: Json, key: str) -> None:
        """`section.<input>.name` in the native document, placed where `key` is written."""
        self.native.put((section, self.name, name), value, self.vendor.spot(key))


def dimensions(vendor: Vendor, key: str, text: str) -> list[int]:
    """`1x3x224x224` → [1, 3, 224, 224]. Raises ProjectError."""
    if not re.fullmatch(r"[1-9][0-9]{0,8}(x[1-9][0-9]{0,8})*", text):
        raise vendor.error(key, f"`{text}` is no shape", "write it as 1x3x224x224")
    return [int(side) for side in text.split("x")]


def numbers(vendor: Vendor, key: str, text: str) -> Json:
    """`103.94 116.78 123.68` → one number, or a list of them. Raises ProjectError."""
    try:
        found = [float(word) for word in re.split(r"[,\s]+", text.strip(", \t"))]
    except ValueError:
        found = [math.nan]
    if not all(map(math.isfinite, found)):
        hint = "one number, or one per channel, divided by spaces"
        raise vendor.error(key, f"`{text}` is no list of numbers", hint)
    return found[0] if len(found) == 1 else found


def whole(vendor: Vendor, key: str, lowest: int, highest: int, other: tuple[int, ...] = ()) -> int:
    """A whole number in its range. Raises ProjectError."""
    text = vendor.text(key)
    if not re.fullmatch(r"[0-9]{1,12}", text) or not (
        lowest <= int(text) <= highest or int(text) in other
    ):
        also = "".join(f"{number} or " for number in other)
        what = f"`{key.partition('.')[2]}` must be {also}{lowest}..{highest}, not {text}"
        raise vendor.error(key, what)
    return int(text)


def folder_files(vendor: Vendor, folder: str, suffix: str = "") -> str:
    """The pattern of the files in a folder, taken at its word."""
    return f"{glob.escape(vendor.path(folder))}/*{suffix}"


def place_of(vendor: Vendor, key: str) -> Place:
    return vendor.spot(key).value
