"""Rewords messages about native keys in the keys of a vendor's file.

A phrase is a pattern for our text and its replacement. Each dialect has one table of phrases for
errors, hints and notes; other text stays unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Callable

Phrases = tuple[tuple[str, str], ...]

# A vendor's file has no key for a finding that is meant: project.yaml beside it has.
ALLOWANCES: Phrases = (
    (r"`allow: \[(.+?)\]` under `(.+?):`", r'`data: {"\2": {allow: [\1]}}` in project.yaml'),
)


def respelling(phrases: Phrases) -> Callable[[str], str]:
    """A function that replaces every phrase in a text, in the order of the table."""
    compiled = tuple((re.compile(pattern), replacement) for pattern, replacement in phrases)

    def respelled(text: str) -> str:
        for pattern, replacement in compiled:
            text = pattern.sub(replacement, text)
        return text

    return respelled
