"""Texts in a drop-in speak of the keys of the file that the user wrote.

Every text of ours that names a key of our YAML is collected from the sources, so that a new one is
respelled or listed here.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache

import pytest

from npumake.dialects.advice import ADVICE, wording_of
from syntax import syntax_of
from workspaces import REPO

# How a text names a key of our own YAML.
OURS = re.compile(
    r"`(?:quantization|calibration|compile|inputs|data|model)[.:`][^/]"
    r"|under `(?:quantization|calibration|compile|inputs|data|model):?`"
    r"|`(?:fed_type|fed_layout|layout|normalized|stacked|offset|dtype|transforms|batch)[:`]"
    r"|write  (?:method|weights):|add  (?:data|\S+): \{?"
    r"|choose kl, max or max_percentile|the project's directory"
)
# Rooms whose texts are about keys that no vendor's file has: they stand in project.yaml.
OWN = (
    *("cli", "targets", "dialects", "evaluate", "detection", "report", "custom"),
    *("make/plan.py", "project/", "stages/handover.py", "perf", "data/stored.py"),
)
# Keys that only a project of ours can say, so that the text is about project.yaml.
BESIDE = re.compile(r"`allow: |evaluation|variants|vendor_tool|`preprocess|snapshot|`split")
ARA2 = {"ara2"}  # all but the form's four keys stands in project.yaml


def is_doc(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Doc"


def texts(node: ast.AST) -> Iterator[str]:
    """Texts with `x` for what is filled in; not the docstrings."""
    waiting = [node]
    while waiting:
        inner = waiting.pop()
        if (isinstance(inner, ast.Expr) and isinstance(inner.value, ast.Constant)) or is_doc(inner):
            continue
        if isinstance(inner, ast.JoinedStr):
            parts = inner.values
            yield "".join(str(p.value) if isinstance(p, ast.Constant) else "x" for p in parts)
        elif isinstance(inner, ast.Constant):
            yield from [inner.value] if isinstance(inner.value, str) else []
        else:
            waiting += ast.iter_child_nodes(inner)


@cache
def about_our_keys() -> tuple[str, ...]:
    found = set()
    for file in sorted((REPO / "pipeline" / "npumake").rglob("*.py")):
        name = file.relative_to(REPO / "pipeline" / "npumake").as_posix()
        if not name.startswith(OWN):
            for text in texts(syntax_of(file)):
                if OURS.search(text) and not BESIDE.search(text):
                    found.add(text)
    return tuple(sorted(found))


def test_the_sources_hold_texts_about_our_keys():
    assert len(about_our_keys()) > 10


@pytest.mark.parametrize("dialect", sorted(ADVICE.keys() - ARA2))
@pytest.mark.parametrize("text", about_our_keys())
def test_a_text_about_our_keys_is_respelled(dialect: str, text: str):
    said = wording_of(dialect).text(text)
    assert said != text
    # A metafile has keys of these two names, too.
    theirs = r"under `(?:inputs|quantization):`" if dialect == "synap" else "$^"
    assert not OURS.search(re.sub(theirs, "", said))


@pytest.mark.parametrize("text", about_our_keys())
def test_a_project_of_ours_keeps_its_words(text: str):
    assert wording_of(None).text(text) == text
