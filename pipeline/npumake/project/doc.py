"""Doc: what a key is for, written behind its type."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Doc:
    """Help for a key, shown by editors, with the limits a schema can check."""

    text: str
    minimum: float | None = None
    maximum: float | None = None
