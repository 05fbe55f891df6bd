"""Doc: the help text of a key, an annotation of its type."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Doc:
    """Help for a key, shown by editors, and the limits that the schema checks."""

    text: str
    minimum: float | None = None
    maximum: float | None = None
