"""Names: classes are unique, nothing is named by a pronoun or participle, constants name a bound."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1] / "pipeline" / "npumake"

# Words that say nothing about a value. Each names the role of a value in a sentence, not the value.
PRONOUNS = frozenset(
    [
        "both",
        "each",
        "everything",
        "here",
        "it",
        "mine",
        "nobody",
        "none",
        "nothing",
        "one",
        "ones",
        "ours",
        "same",
        "some",
        "that",
        "theirs",
        "them",
        "there",
        "they",
        "this",
        "those",
        "what",
        "whatever",
        "which",
        "who",
        "whose",
    ]
)
PARTICIPLES = frozenset(
    [
        "asked",
        "done",
        "drawn",
        "fed",
        "found",
        "given",
        "gone",
        "heard",
        "held",
        "kept",
        "known",
        "laid",
        "lost",
        "made",
        "met",
        "placed",
        "said",
        "seen",
        "shown",
        "taken",
        "told",
        "wanted",
        "wished",
    ]
)
COMPARATIVES = frozenset(["least", "less", "more", "most"])
VAGUE = PRONOUNS | PARTICIPLES | COMPARATIVES


def modules(root: Path) -> Iterator[tuple[str, ast.Module]]:
    for file in sorted(root.rglob("*.py")):
        yield file.relative_to(root).as_posix(), ast.parse(file.read_text(encoding="utf-8"))


def bound_names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """(line, name) of every variable, parameter, field, function, class and attribute."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.attr


def vague(name: str) -> bool:
    return name.strip("_").lower() in VAGUE
