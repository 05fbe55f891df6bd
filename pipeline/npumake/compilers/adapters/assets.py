"""The scripts that other interpreters run; they count in the key of what imports this module."""

from __future__ import annotations

from pathlib import Path

SCRIPTS = Path(__file__).parent / "scripts"
