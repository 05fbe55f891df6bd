"""Syntax trees of the code, each parsed once by a process: all of it takes some seconds."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path


@cache
def parsed(text: str) -> ast.Module:
    """Do not change it: other tests read the same tree."""
    return ast.parse(text)


def syntax_of(file: Path) -> ast.Module:
    return parsed(file.read_text(encoding="utf-8"))
