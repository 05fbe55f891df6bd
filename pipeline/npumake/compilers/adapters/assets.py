"""Scripts for other interpreters; they are part of the key of every importing module."""

from __future__ import annotations

from pathlib import Path

SCRIPTS = Path(__file__).parent / "scripts"
