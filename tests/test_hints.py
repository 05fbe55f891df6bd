"""Every command that a text of the package names is one: the real parser takes it.

A text is a string that users may read: of an error, a hint, a note or a help. What an f-string
fills in becomes `X`. A hint is done as it is told, so there nothing may be missing either.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import pytest

from npumake.cli.main import ALIASES, VERBS
from npumake.cli.screen import UNITS, Screen
from npumake.cli.verb import parser_of
from npumake.progress import listening, track
from syntax import parsed

PACKAGE = Path(__file__).parents[1] / "pipeline" / "npumake"
COMMAND = re.compile(r"\bnpumake (?P<rest>[a-zA-Z_].*?)(?=[`;,)\n\"']|\.\s|$|: |  #)")
NAMES_US = re.compile(r"(?<!from )\bnpumake[ \"']")  # in a string, perhaps at the end of its line
# Behind "npumake" in a sentence about it, not in a command.
PROSE = {
    *(
        "X",
        "VERB",
        "after",
        "compiles",
        "does",
        "failed",
        "failed.",
        "itself",
        "knows",
        "makes",
        "project",
        "reads",
        "record",
        "turns",
    ),
    *("target", "trust", "version"),
}
# The first word of a sentence that goes on behind a command.
SENTENCE = {
    *(
        "accepts",
        "and",
        "builds",
        "copies",
        "creates",
        "encrypts",
        "fetches",
        "first",
        "lists",
        "makes",
    ),
    *("names", "or", "prints", "reads", "requires", "searches", "shows", "tells", "there", "times"),
    *("to", "unless", "was", "what", "when", "with", "writes", "requires", "measures", "puts"),
}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Text(NamedTuple):
    where: str
    text: str
    is_hint: bool


def texts() -> Iterator[Text]:
    for file in sorted(PACKAGE.rglob("*.py")):
        source = file.read_text(encoding="utf-8")
        if not NAMES_US.search(source):
            continue
        nodes = [*ast.walk(parsed(source))]
        hints = {id(part) for node in nodes for hint in hints_in(node) for part in ast.walk(hint)}
        skipped = {id(node) for node in docstrings(nodes)}
        for node in nodes:
            if isinstance(node, ast.JoinedStr):
                skipped |= {id(part) for part in ast.walk(node) if part is not node}
            if id(node) not in skipped and "npumake " in (text := text_of(node)):
                where = f"{file.relative_to(PACKAGE)}:{node.lineno}"  # type: ignore[attr-defined]
                yield Text(where, text, id(node) in hints)


def docstrings(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    for node in nodes:
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr):
            yield body[0].value


def text_of(node: ast.AST) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if not isinstance(node, ast.JoinedStr):
        return ""
    return "".join(
        str(part.value) if isinstance(part, ast.Constant) else "X" for part in node.values
    )


def hints_in(node: ast.AST) -> Iterator[ast.AST]:
    """The hint of an error: its third argument, one called `hint`, or a name with it."""
    if isinstance(node, ast.Call):
        yield from (keyword.value for keyword in node.keywords if keyword.arg == "hint")
        name = getattr(node.func, "id", getattr(node.func, "attr", ""))
        yield from node.args[2:3] if str(name).endswith("Error") else ()
    if isinstance(node, ast.Assign):
        names = [getattr(target, "id", "").lower() for target in node.targets]
        if any("hint" in name for name in names):
            yield node.value


def commands(text: str) -> list[list[str]]:
    """The words of each command, without the sentence behind it."""
    found = []
    for match in COMMAND.finditer(text):
        words = match["rest"].split()
        if words[0] in PROSE or words[1:2] == ["version"]:  # that of a vendor's program
            continue
        end = next((i for i, word in enumerate(words) if i and word in SENTENCE), len(words))
        found.append(words[:end])
    return found


@cache
def parser() -> argparse.ArgumentParser:
    table = {**VERBS, **ALIASES}
    return parser_of({verb: import_module(f"npumake.cli.{name}") for verb, name in table.items()})


NAMED = [
    pytest.param(text, words, id=f"{text.where} {' '.join(words)}")
    for text in texts()
    for words in commands(text.text)
]


def complaint(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """What the parser says of a command; empty if it takes it."""
    try:
        parser().parse_args(words)
    except SystemExit:
        return capsys.readouterr().err.splitlines()[-1]
    return ""


@pytest.mark.parametrize(("text", "words"), NAMED)
def test_a_command_that_a_text_names_is_one(
    text: Text, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    said = complaint(words, capsys)
    if not text.is_hint and "arguments are required" in said:
        return  # a sentence names a verb or an option, not what is typed
    if "unknown value 'X'" in said:
        return  # one of several verbs, filled in
    assert said == ""


def test_there_are_hints_and_other_texts() -> None:
    kinds = [text.is_hint for text, _ in (case.values for case in NAMED)]
    assert {*kinds} == {True, False}
    assert len(kinds) > 40


@pytest.mark.parametrize(
    "text",
    [
        "run npumake bild digits",
        "npumake build --forzen X",
        "npumake cache pus",
        "`npumake exprot`",
    ],
)
def test_a_wrong_command_is_found(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    (words,) = commands(text)
    assert complaint(words, capsys) != ""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("npumake build makes it", [["build"]]),
        ("or: npumake cache unpin X, and pin it again", [["cache", "unpin", "X"]]),
        ("`npumake perf --ddr` and npumake failed.", [["perf", "--ddr"]]),
    ],
)
def test_a_sentence_is_no_part_of_a_command(text: str, words: list[list[str]]) -> None:
    assert commands(text) == words


def test_a_long_task_tells_its_unit_and_the_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal, as a search of methods reports it."""
    terminal = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    screen = Screen()
    screen.use(terminal)
    screen.begin("digits:rdk-x5/recipe")
    with listening(screen.progress):
        for _ in track(range(3), "recipe", 3):
            screen._live.refresh()
    screen.end()
    drawn = terminal.getvalue()
    assert "digits:rdk-x5/recipe" in drawn
    assert all(f"trial {number} of 3" in drawn for number in (1, 2, 3))
    assert re.search(r"-:--:--|\d:\d\d:\d\d", drawn)


@pytest.mark.parametrize("task", UNITS)
def test_every_unit_is_of_a_task_that_reports(task: str) -> None:
    sources = (file.read_text(encoding="utf-8") for file in PACKAGE.rglob("*.py"))
    assert any(re.search(rf'(track|report)\([^\n]*"{task}"', source) for source in sources)
