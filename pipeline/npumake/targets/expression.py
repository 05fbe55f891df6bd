"""Conditions of a target's file, such as `kernel_h <= 7 and channels <= 2048`, and their truth.

A target's file is data, so a condition is read by Python's parser and walked by our own evaluator,
never run. There are numbers, texts, lists, names of facts, comparisons, `and or not`, `a if c else
b`, the arithmetic + - * // %, and the functions of FUNCTIONS; nothing else has a meaning. A text is
at most MAX_CHARACTERS characters and MAX_DEPTH levels.

A fact may be unknown, and then so is the result (Kleene's logic): false and unknown is false, true
or unknown is true, everything else with an unknown in it is unknown. The same holds for an
impossible operation, such as a number compared with a text, or x % 0.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

from npumake.errors import ProjectError

MAX_CHARACTERS = 400  # characters
MAX_DEPTH = 20  # levels
MAX_INTEGER = 1 << 53  # of a number that is written
_ALPHABET = re.compile(r"[A-Za-z0-9_ .,()\[\]<>=!+*/%'-]*")

Fact: TypeAlias = "bool | int | float | str | tuple[Fact, ...] | None"
Look: TypeAlias = Callable[[str], Fact]


@dataclass(frozen=True)
class Breach:
    """A false part of a condition, and the facts in it."""

    limit: str
    facts: tuple[tuple[str, Fact], ...]

    def __str__(self) -> str:
        facts = ", ".join(f"{name} = {_fact_text(fact)}" for name, fact in self.facts)
        return f"{self.limit}, found {facts}"


def broken(text: str, look: Look) -> tuple[Breach, ...]:
    """The parts of the condition, joined by `and`, that are false of the facts that `look` finds.

    Raises ProjectError for a text that is not a condition.
    """
    return tuple(
        Breach(ast.unparse(part), tuple((name, look(name)) for name in _names(part)))
        for part in _parts(parsed(text))
        if _value(part, look) is False
    )


def names(text: str) -> tuple[str, ...]:
    """The facts that the condition reads, sorted. Raises ProjectError."""
    return _names(parsed(text))


@cache
def parsed(text: str) -> ast.expr:
    """Raises ProjectError for an expression that conditions do not support."""
    if len(text) > MAX_CHARACTERS or not _ALPHABET.fullmatch(text):
        raise _error(text, f"at most {MAX_CHARACTERS} letters, digits, and signs of arithmetic")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        raise _error(text, "write it as `kernel_h <= 7 and axis in [1, 2]`") from error
    level: list[ast.AST] = [tree]
    for _ in range(MAX_DEPTH):
        for node in level:
            _refuse(text, node)
        level = [below for node in level for below in ast.iter_child_nodes(node)]
    if level:
        raise _error(text, f"at most {MAX_DEPTH} levels")
    return tree


def _refuse(text: str, node: ast.AST) -> None:
    """Raises ProjectError for a node that has no meaning."""
    is_known = isinstance(node, (*_VALUES, *_OPERATORS, ast.Load, ast.And, ast.Or))
    if not is_known:
        raise _error(text, f"{type(node).__name__} has no meaning here")
    if isinstance(node, ast.Constant):
        number = type(node.value) is int and node.value <= MAX_INTEGER
        if not (number or isinstance(node.value, bool | str)):
            raise _error(text, "constants are whole numbers and texts")
    if isinstance(node, ast.Call):
        plain = isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS
        if not plain or node.keywords:
            raise _error(text, f"functions: {', '.join(FUNCTIONS)}")


def _error(text: str, hint: str) -> ProjectError:
    return ProjectError(f"`{text[:60]}` is not a condition", hint=hint)


def _parts(tree: ast.expr) -> tuple[ast.expr, ...]:
    if isinstance(tree, ast.BoolOp) and isinstance(tree.op, ast.And):
        return tuple(part for value in tree.values for part in _parts(value))
    return (tree,)


def _names(tree: ast.expr) -> tuple[str, ...]:
    names_in_tree = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return tuple(sorted(names_in_tree - FUNCTIONS.keys()))


def _fact_text(fact: Fact) -> str:
    return "unknown" if fact is None else str(list(fact) if isinstance(fact, tuple) else fact)


# -- values --------------------------------------------------------------------------------


def _value(node: ast.expr, look: Look) -> Fact:
    return _VALUES[type(node)](node, look)


def _name(node: ast.Name, look: Look) -> Fact:
    return look(node.id)


def _constant(node: ast.Constant, _: Look) -> Fact:
    value: Fact = node.value  # type: ignore[assignment]  # `parsed` let no other type in
    return value


def _list(node: ast.List | ast.Tuple, look: Look) -> Fact:
    return tuple(_value(item, look) for item in node.elts)


def _all_or_any(node: ast.BoolOp, look: Look) -> Fact:
    decides = isinstance(node.op, ast.Or)
    unknown = False
    for item in node.values:
        value = _value(item, look)
        if value is not None and bool(value) is decides:
            return decides
        unknown |= value is None
    return None if unknown else not decides


def _unary(node: ast.UnaryOp, look: Look) -> Fact:
    return _applied(_OPERATORS[type(node.op)], _value(node.operand, look))


def _arithmetic(node: ast.BinOp, look: Look) -> Fact:
    pair = _value(node.left, look), _value(node.right, look)
    if not all(isinstance(side, int | float) for side in pair):
        return None  # a text or a list times a number would be as long as one likes
    return _applied(_OPERATORS[type(node.op)], *pair)


def _compared(node: ast.Compare, look: Look) -> Fact:
    sides = [_value(side, look) for side in (node.left, *node.comparators)]
    results = [
        _applied(_OPERATORS[type(sign)], a, b)
        for sign, a, b in zip(node.ops, sides, sides[1:], strict=False)
    ]
    return False if False in results else None if None in results else True


def _chosen(node: ast.IfExp, look: Look) -> Fact:
    test = _value(node.test, look)
    return None if test is None else _value(node.body if test else node.orelse, look)


def _called(node: ast.Call, look: Look) -> Fact:
    assert isinstance(node.func, ast.Name)  # `parsed` saw to it
    return _applied(FUNCTIONS[node.func.id], *(_value(item, look) for item in node.args))


def _applied(function: Callable[..., Fact], *arguments: Fact) -> Fact:
    if any(value is None for value in arguments):
        return None
    try:
        return function(*arguments)
    except (TypeError, ValueError, ArithmeticError):
        return None


def _among(value: Fact, choices: Iterable[Fact]) -> bool | None:
    """A text is not a list of its letters."""
    return None if isinstance(choices, str) else value in choices


def _power_of_two(number: float) -> bool:
    """Of a half and a quarter too."""
    return number > 0 and float(number).hex().split("p")[0] == "0x1.0000000000000"


FUNCTIONS: dict[str, Callable[..., Fact]] = {
    "len": lambda items: len(items) if isinstance(items, tuple) else None,
    "max": lambda *numbers: max(numbers),
    "min": lambda *numbers: min(numbers),
    "power_of_two": _power_of_two,
}
_OPERATORS: dict[type[ast.AST], Callable[..., Fact]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.In: _among,
    ast.NotIn: lambda value, choices: _applied(operator.not_, _among(value, choices)),
    ast.Not: operator.not_,
    ast.USub: operator.neg,
}
_VALUES: dict[type[ast.AST], Callable[..., Fact]] = {
    ast.BinOp: _arithmetic,
    ast.BoolOp: _all_or_any,
    ast.Call: _called,
    ast.Compare: _compared,
    ast.Constant: _constant,
    ast.IfExp: _chosen,
    ast.List: _list,
    ast.Name: _name,
    ast.Tuple: _list,
    ast.UnaryOp: _unary,
}
