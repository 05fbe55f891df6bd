"""Conditions of a target's file: what they mean, and that nothing else can be said in them."""

import ast
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npumake.errors import ProjectError
from npumake.targets.expression import broken, names, parsed

FACTS = {"a": 3, "b": 8, "none": None, "mode": "linear", "axes": (2, 3), "half": 0.5}


def holds(text):
    """False where a part is broken; unknown counts as kept."""
    return broken(text, FACTS.get) == ()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a == 3", True),
        ("1 <= a < b", True),
        ("1 <= b < a", False),
        ("a in [1, 3]", True),
        ("a not in (1, 3)", False),
        ("mode in ['nearest', 'linear']", True),
        ("mode in 'linear'", True),  # a text is no list: unknown
        ("axes == [2, 3]", True),
        ("[a, b] in [[3, 8]]", True),
        ("len(axes) == 1", False),
        ("2 * a - 1 <= b // 2 + 1", True),
        ("b % a == 2 and -a < 0", True),
        ("power_of_two(b) and power_of_two(half) and not power_of_two(a)", True),
        ("min(a, b) == 3 and max(a, b) == 8", True),
        ("a <= (2 if b > 4 else 9)", False),
        ("none == 1", True),
        ("none == 1 and a == 4", False),
        ("none == 1 or a == 4", True),
        ("not (none == 1 or a == 3)", False),
        ("(1 if none else 2) == 9", True),
        ("a % 0 == 1", True),
        ("mode < a", True),
        ("mode * 9 == 1", True),
        ("nobody > 3", True),
    ],
)
def test_a_condition_means_what_it_says(text, expected):
    assert holds(text) is expected


def test_what_is_broken_is_named_with_what_was_found():
    (breach,) = broken("a <= b and 1 <= b <= a and none > 1", FACTS.get)
    assert str(breach) == "1 <= b <= a, found a = 3, b = 8"
    assert names("max(x, y) <= z or x in [w]") == ("w", "x", "y", "z")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a ==",
        "a = 1",
        "a; b",
        "a\nb",
        "__import__('os').system('true')",
        "open('x')",
        "a.real",
        "axes[0]",
        "(lambda: 1)()",
        "[x for x in axes]",
        "{a}",
        "{1: 2}",
        "f'{a}'",
        "'\\x41'",
        "b'x'",
        "1.5 < a",
        "1e9 < a",
        "1j",
        "None",
        "...",
        "a ** 9",
        "a << 9",
        "a @ b",
        "~a",
        "a is b",
        "(a := 3)",
        "*axes",
        "min(*axes)",
        "min(a, key=b)",
        "min.real(a)",
        "9" * 30,
        "(" * 150 + "a" + ")" * 150 + "a",
        "-" * 300 + "1",
        "not " * 90 + "a",
        "a and " * 80 + "a",
        "a" * 401,
        "ä == 1",
        "a == '\x00'",
        "yield a",
        "await a",
    ],
)
def test_whatever_else_is_refused(text):
    with pytest.raises(ProjectError, match="is not a condition"):
        parsed(text)


CHARACTERS = st.text("abn01_ .,()[]<>=!+*/%'-", max_size=60)
NAMES = ["a", "b", "none", "mode", "axes", "half", "0", "7", "'x'", "True"]
SIGNS = ["(", ")", "[", "]", ",", "+", "-", "*", "//", "%", "<", "<=", "==", "!="]
KEYS = ["in", "not", "and", "or", "if", "else", "min", "max", "len", "power_of_two"]
WORDS = st.lists(st.sampled_from(NAMES + SIGNS + KEYS), max_size=14).map(" ".join)


@pytest.mark.slow
@given(st.one_of(CHARACTERS, WORDS, st.text(max_size=40)))
def test_any_text_is_a_condition_or_one_error(text):
    with suppress(ProjectError):
        assert all(breach.limit in ast.unparse(parsed(text)) for breach in broken(text, FACTS.get))


NUMBERS = st.integers(-20, 20)


@given(NUMBERS, NUMBERS, NUMBERS)
def test_arithmetic_and_logic_are_those_of_python(a, b, c):
    facts = {"a": a, "b": b, "c": c}.get
    assert (broken("a * b - c <= b or a < c < b", facts) == ()) is (a * b - c <= b or a < c < b)
    if b:
        assert broken("a // b * b + a % b == a", facts) == ()


TRUTHS = st.sampled_from([True, False, None])


@given(TRUTHS, TRUTHS)
def test_an_unknown_makes_false_only_what_is_false_either_way(p, q):
    def is_false(text, p, q):
        return broken(text, {"p": p, "q": q}.get) != ()

    for text in ("(p or q) == True", "(p or not q) == True", "not (p and q)"):
        worlds = [(x, y) for x in _either(p) for y in _either(q)]
        assert not is_false(text, p, q) or all(is_false(text, x, y) for x, y in worlds)


def _either(truth):
    return (True, False) if truth is None else (truth,)
