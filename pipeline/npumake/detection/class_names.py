"""The class names that an exporter wrote into a model's metadata, under `names`.

Ultralytics and YOLOv5 print a dict of Python there, others a list or JSON.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

MAX_NAMES_BYTES = 1 << 20


def class_names(notes: Mapping[str, str]) -> tuple[str, ...]:
    """The `names` by index; () if there are none, or they are unreadable."""
    return printed_names(notes.get("names", ""))


def printed_names(text: str) -> tuple[str, ...]:
    """The names by index, of a dict or list printed by Python, or of JSON; () if unreadable."""
    if len(text) > MAX_NAMES_BYTES:
        return ()
    try:
        value = ast.literal_eval(text)  # literals only: nothing runs
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return ()
    if isinstance(value, dict):
        keys = [key for key in value if isinstance(key, int)]
        if sorted(keys) != list(range(len(value))):
            return ()
        value = [value[key] for key in sorted(keys)]
    return tuple(map(str, value)) if isinstance(value, list | tuple) else ()
