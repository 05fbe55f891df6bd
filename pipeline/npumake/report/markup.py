"""Untrusted text as text of HTML, XML and SVG."""

from __future__ import annotations

from html import escape


def text_of(text: str) -> str:
    """Escaped, without the characters that XML forbids or that command a terminal."""
    return escape("".join(c if c.isprintable() or c == "\n" else "\ufffd" for c in text))
