"""Texts about our own keys, respelled in the keys of a vendor's file.

A phrase is a pattern of our words and what the vendor's file has for them. Hints, errors and notes
are one table of phrases per dialect; text that names no key of ours stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable

Phrases = tuple[tuple[str, str], ...]


def respelling(phrases: Phrases) -> Callable[[str], str]:
    """A text in a vendor's words: every phrase in it is replaced, the first of the table first."""
    compiled = tuple((re.compile(ours), theirs) for ours, theirs in phrases)

    def respelled(text: str) -> str:
        for ours, theirs in compiled:
            text = ours.sub(theirs, text)
        return text

    return respelled
