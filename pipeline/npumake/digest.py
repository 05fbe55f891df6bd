"""SHA-256 of documents and files. Documents are compared as canonical JSON."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import os
from functools import cache
from pathlib import Path
from typing import Any

Json = Any  # a result of json.loads: dict, list, str, int, float, bool or None
_SCALARS = (str, int, float, bool, type(None))
_EXACT_SCALARS = frozenset(_SCALARS)


def plain(value: Any) -> Json:
    """`value` as JSON: dataclasses become dicts, tuples lists. Raises TypeError for other types.

    In Python ("a",) != ["a"]; in JSON they are equal. Keys pass through here first.
    """
    # Most of a document are scalars: no call for those in a dict or list.
    scalars = _EXACT_SCALARS
    if isinstance(value, dict):
        return {
            str(key): item if type(item) in scalars else plain(item) for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [item if type(item) in scalars else plain(item) for item in value]
    if isinstance(value, _SCALARS):
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {key: plain(getattr(value, name)) for key, name in _keys_of(type(value))}
    raise TypeError(f"{type(value).__name__} has no place in a document: {value!r}")


@cache
def _keys_of(kind: type[Any]) -> tuple[tuple[str, str], ...]:
    """(key, name) of each field of a dataclass."""
    return tuple((key_of(field), field.name) for field in dataclasses.fields(kind))


def key_of(field: dataclasses.Field[Any]) -> str:
    """The key of a field: its name; `with_` becomes `with`, a keyword of Python."""
    return field.name.removesuffix("_")


def canonical(document: Any) -> bytes:
    """One spelling per document: sorted keys, no spaces, no NaN."""
    text = json.dumps(plain(document), sort_keys=True, separators=(",", ":"), allow_nan=False)
    return text.encode()


def text(document: Any, **layout: Any) -> str:
    """`document` as strict JSON, with the layout options of `json.dumps`.

    A number that is not finite becomes null: JSON has no NaN, and null passes no comparison.
    """
    return json.dumps(_finite(plain(document)), allow_nan=False, **layout)


def _finite(value: Json) -> Json:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list) else value


def number(value: float | None) -> float:
    """A number written by `text`; NaN for null."""
    return math.nan if value is None else float(value)


def of_document(document: Any) -> str:
    return hashlib.sha256(canonical(document)).hexdigest()


def of_bytes(data: bytes | memoryview) -> str:
    return hashlib.sha256(data).hexdigest()


def is_stored(path: Path | str) -> bool:
    """Whether `path` is a plain file with stored bytes. Files below /proc and /sys are generated at
    each read, which may never end."""
    return os.path.isfile(path) and not is_generated(path)


def is_generated(path: Path | str) -> bool:
    try:
        return f"{os.path.realpath(path)}/".startswith(("/proc/", "/sys/"))
    except ValueError:  # a name that the locale cannot encode
        return False


def of_file(path: Path) -> str:
    """SHA-256 of a file, in one read and constant memory."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
