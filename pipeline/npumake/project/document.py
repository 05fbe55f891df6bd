"""Parses YAML into plain data with the place of every key and value.

A route is the tuple of keys and indices from the top: ("inputs", "image", "mean", 0).

Each alias reads its anchor again, so the bound on the number of values also stops alias bombs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from npumake.digest import Json, is_stored
from npumake.errors import Place, ProjectError
from npumake.project.events import MAX_FILE_BYTES, Event, Scan, refuse_depth, scan
from npumake.project.scalar import Scalar, meaning

Route = tuple[str | int, ...]
Words = Callable[[str, Place], Scalar]  # the meaning of an unquoted word

MAX_VALUES = 100_000  # values in one file, aliases expanded
# (key, word): words that are booleans in YAML 1.1, but text for this key.
OWN_WORDS = ((("compiled",), "off"),)


@dataclass(frozen=True)
class RoutePlace:
    """The places of a route: its key, and the start of its value.

    For list items and mappings the two places are equal.
    """

    key: Place
    value: Place


@dataclass(frozen=True)
class Document:
    """Plain data and the place of every route, in the order of the text."""

    path: str
    data: Json
    places: Mapping[Route, RoutePlace]
    repeated: tuple[tuple[str, Place], ...] = ()  # duplicate keys, at the place of the last one


def read_document(file: Path, words: Words = meaning, again: bool = False) -> Document:
    """The document in `file`; places name it relative to the current directory.

    Raises ProjectError as `parse_document` does, and for an unreadable file.
    """
    return parse_document(read_source(file), path_text(file), words, again)


def read_source(file: Path) -> bytes:
    """The bytes of a YAML file, at most one more than the limit. Raises ProjectError."""
    if os.path.lexists(file) and not is_stored(file):
        raise ProjectError("not a plain file", Place(path_text(file)))
    try:
        with file.open("rb") as stream:
            return stream.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        message = f"cannot read the file: {error.strerror}"
        raise ProjectError(message, Place(path_text(file))) from None


def parse_document(
    source: bytes, path: str, words: Words = meaning, again: bool = False
) -> Document:
    """Parses one YAML document in UTF-8; an empty one is an empty mapping.

    With `again` the last of several equal keys counts, and `repeated` lists them. Raises
    ProjectError for text that is not YAML, not UTF-8, too large, too deep, or ambiguous: a
    duplicate key, a tag, a merge key, a bare `yes`.
    """
    reading = _Reading(scan(source, path), words, again)
    top = Place(path)
    if not reading.scan.events:
        return Document(path, {}, {(): RoutePlace(top, top)})
    data, _ = _value(reading, 0, (), top)
    repeated = tuple(reading.repeated)
    return Document(path, {} if data is None else data, reading.places, repeated)


def path_text(file: Path) -> str:
    """The path for messages: relative to the current directory if below it."""
    whole, directory = file.absolute(), Path.cwd()
    return (
        whole.relative_to(directory).as_posix()
        if whole.is_relative_to(directory)
        else file.as_posix()
    )


@dataclass(frozen=True)
class _Reading:
    scan: Scan
    words: Words
    again: bool
    places: dict[Route, RoutePlace] = field(default_factory=dict)
    repeated: list[tuple[str, Place]] = field(default_factory=list)


def _value(reading: _Reading, at: int, route: Route, key: Place | None) -> tuple[Json, int]:
    """The value that starts at event `at`, and the index of the next event."""
    event, place = reading.scan.events[at], reading.scan.place(at)
    if isinstance(event, yaml.AliasEvent):
        value, _ = _value(reading, reading.scan.anchor(event), route, key)
        return value, at + 1
    if event.tag is not None:
        tag = event.tag.replace("tag:yaml.org,2002:", "!!")
        raise ProjectError(f"tag `{tag}` is not read", place, "write the plain value")
    if len(reading.places) == MAX_VALUES:
        hint = "an alias counts with all its values"
        raise ProjectError(f"more than {MAX_VALUES} values in one file", place, hint)
    key = key or place
    if isinstance(event, yaml.ScalarEvent):
        reading.places[route] = RoutePlace(key, place)
        return _scalar(reading, event, place, route), at + 1
    refuse_depth(len(route) + 1, place)
    if isinstance(event, yaml.SequenceStartEvent):
        reading.places[route] = RoutePlace(key, place)
        return _list(reading, at + 1, route)
    reading.places[route] = RoutePlace(key, key)
    return _mapping(reading, at + 1, route)


def _scalar(reading: _Reading, event: Event, place: Place, route: Route) -> Scalar:
    is_bare = event.implicit[0] and (route[-1:], event.value) not in OWN_WORDS
    return reading.words(event.value, place) if is_bare else event.value


def _list(reading: _Reading, at: int, route: Route) -> tuple[Json, int]:
    items: list[Json] = []
    while not isinstance(reading.scan.events[at], yaml.SequenceEndEvent):
        item, at = _value(reading, at, (*route, len(items)), None)
        items.append(item)
    return items, at + 1


def _mapping(reading: _Reading, at: int, route: Route) -> tuple[Json, int]:
    items: dict[str, Json] = {}
    while not isinstance(reading.scan.events[at], yaml.MappingEndEvent):
        name, place = _key(reading, at)
        if name in items and reading.again:
            _forget(reading, (*route, name), place)
        elif name in items:
            first = reading.places[*route, name].key.line
            message = f"key `{name}` is written twice, on line {first} and line {place.line}"
            raise ProjectError(message, place, "keep one of them")
        items[name], at = _value(reading, at + 1, (*route, name), place)
    return items, at + 1


def _forget(reading: _Reading, route: Route, place: Place) -> None:
    """Drops the places of the key's earlier value and records the duplicate."""
    reading.repeated.append((str(route[-1]), place))
    for inside in [key for key in reading.places if key[: len(route)] == route]:
        del reading.places[inside]


def _key(reading: _Reading, at: int) -> tuple[str, Place]:
    """A key is always text, so that an input may be called `y` or `0`."""
    event, place = reading.scan.events[at], reading.scan.place(at)
    if not isinstance(event, yaml.ScalarEvent) or event.tag is not None or not event.value:
        raise ProjectError("a key must be a name", place)
    if event.value == "<<" and event.implicit[0]:
        raise ProjectError("merge keys are not read", place, "write the keys out")
    return event.value, place
