"""Scans YAML text into the parser's events, with all anchors and clear syntax errors.

We do not use PyYAML's composer: it has no places, ignores duplicate keys and overflows the stack on
a deep file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from npumake.errors import Place, ProjectError

Event = Any  # PyYAML's events carry more than its stubs say

MAX_FILE_BYTES = 2**20  # bytes of one file
MAX_DEPTH = 64  # nested collections

# The C parser, if PyYAML has it, gives the same events about ten times faster.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_UNPRINTABLE = re.compile(
    "[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)
_TOO_DEEP = "maximum nesting depth"  # newer parsers have a limit of their own, above DEEPEST
_HINTS = {
    "mapping values are not allowed": "check the indentation; quote a value that holds a colon",
    "cannot start any token": "quote a value that starts with a special character",
}


@dataclass(frozen=True)
class Scan:
    """The events of the values in one file, in order, and the index of each anchor's start."""

    path: str
    events: tuple[Event, ...]
    anchors: Mapping[str, int]

    def place(self, at: int) -> Place:
        return _place(self.path, self.events[at])

    def anchor(self, alias: Event) -> int:
        return self.anchors[alias.anchor]


def scan(source: bytes, path: str) -> Scan:
    """The events of `source`; empty without a value.

    Raises ProjectError for text that is not UTF-8, not YAML, too large or too deep, for a second
    document, and for an alias before the end of its anchor.
    """
    events: list[Event] = []
    anchors: dict[str, int] = {}
    opened: list[int] = []
    for event in _parsed(_decoded(source, path), path):
        place, at = _place(path, event), len(events)
        events.append(event)
        if isinstance(event, yaml.AliasEvent) and event.anchor not in anchors:
            hint = f"an anchor `&{event.anchor}` must end before it is used"
            raise ProjectError(f"unknown alias `*{event.anchor}`", place, hint)
        if isinstance(event, yaml.CollectionStartEvent):
            opened.append(at)
            refuse_depth(len(opened), place)
        if isinstance(event, yaml.CollectionEndEvent):
            _keep_anchor(anchors, opened[-1], events[opened.pop()], path)
        if isinstance(event, yaml.ScalarEvent):
            _refuse_escapes(event, place)
            _keep_anchor(anchors, at, event, path)
    return Scan(path, tuple(events), anchors)


def refuse_depth(depth: int, place: Place) -> None:
    if depth > MAX_DEPTH:
        raise _too_deep(place)


def _too_deep(place: Place) -> ProjectError:
    return ProjectError(f"nested more than {MAX_DEPTH} deep", place)


def _refuse_escapes(event: Event, place: Place) -> None:
    """Raises ProjectError for escapes such as NUL or a lone surrogate: no file name allows them."""
    if _UNPRINTABLE.search(event.value):
        raise ProjectError("unprintable character in a text", place)


def _keep_anchor(anchors: dict[str, int], at: int, event: Event, path: str) -> None:
    """Registers an anchor at the end of its value, so that no value contains itself."""
    if event.anchor in anchors:
        raise ProjectError(f"anchor `&{event.anchor}` is written twice", _place(path, event))
    if event.anchor is not None:
        anchors[event.anchor] = at


def _place(path: str, event: Event) -> Place:
    return Place(path, event.start_mark.line + 1, event.start_mark.column + 1)


def _decoded(source: bytes, path: str) -> str:
    if len(source) > MAX_FILE_BYTES:
        raise ProjectError(f"the file is larger than {MAX_FILE_BYTES // 1024} KiB", Place(path))
    try:
        text = source.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = source.count(b"\n", 0, error.start) + 1
        raise ProjectError("the file is not UTF-8 text", Place(path, line, 1)) from None
    if stray := _UNPRINTABLE.search(text):
        line = text.count("\n", 0, stray.start()) + 1
        column = stray.start() - text.rfind("\n", 0, stray.start())
        raise ProjectError("unprintable character", Place(path, line, column))
    return text


def _parsed(text: str, path: str) -> Iterator[Event]:
    """The starts and ends of values, without the events of stream and document."""
    documents, before = 0, None
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            documents += isinstance(event, yaml.DocumentStartEvent)
            if isinstance(before, yaml.DocumentStartEvent) and _is_nothing(event):
                event.start_mark = before.end_mark  # the C parser has it on the line below
            before = event
            if documents > 1:
                hint = "one document per file: remove the `---`"
                raise ProjectError("a second YAML document", _place(path, event), hint)
            if isinstance(event, yaml.NodeEvent | yaml.CollectionEndEvent):
                yield event
    except yaml.MarkedYAMLError as error:
        raise _syntax_error(error, text, path) from None


def _is_nothing(event: Event) -> bool:
    """Whether the event is an empty value without anchor and tag."""
    named = isinstance(event, yaml.ScalarEvent) and (event.anchor or event.tag)
    is_empty = isinstance(event, yaml.ScalarEvent) and not event.value and not event.style
    return is_empty and not named


def _syntax_error(error: yaml.MarkedYAMLError, text: str, path: str) -> ProjectError:
    mark, start = error.problem_mark, error.context_mark
    if mark is None:
        return ProjectError(f"not YAML: {error.problem}", Place(path))
    place = Place(path, mark.line + 1, mark.column + 1)
    if _TOO_DEEP in str(error.problem):  # the scanner is far ahead of the events
        return _too_deep(place)
    line = [*text.split("\n"), ""][mark.line]
    if line[mark.column : mark.column + 1] == "\t":
        return ProjectError("a tab cannot indent", place, "indent with spaces")
    hint = next((_HINTS[part] for part in _HINTS if part in str(error.problem)), "")
    if not hint and start and start.line < mark.line:
        hint = f"{error.context} that starts on line {start.line + 1}"
    return ProjectError(f"not YAML: {error.problem}", place, hint)
