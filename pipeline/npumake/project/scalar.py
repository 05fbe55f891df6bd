"""The meaning of unquoted words: the YAML 1.2 core schema without its ambiguities.

    null      ~  null  (nothing)
    boolean   true  false
    integer   [-+]? (0 | [1-9][0-9]*)  |  0x[0-9a-fA-F]+
    number    [-+]? (.d+ | d+.d* | d+ before an exponent) ([eE][-+]?d+)?

Other words are text, including `1_000`, `007`, `1:30` and `2024-01-01`, which YAML 1.1 reads as
numbers and dates. Words on which readers disagree are refused.
"""

from __future__ import annotations

import math
import re

from npumake.errors import Place, ProjectError

Scalar = str | int | float | bool | None

MAX_INTEGER_CHARACTERS = 20  # characters: 64 bits with a sign

_WORDS: dict[str, Scalar] = {
    "": None,
    "~": None,
    "null": None,
    "Null": None,
    "NULL": None,
    "true": True,
    "false": False,
}
_TRAP = re.compile(r"y|n|yes|no|on|off|true|false", re.IGNORECASE)
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)|0x[0-9a-fA-F]+")
_NUMBER = re.compile(r"[-+]?(\.[0-9]+|[0-9]+\.[0-9]*|[0-9]+(?=[eE]))([eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.inf|\.nan", re.IGNORECASE)
# YAML 1.1, which Python tools read with PyYAML.
_OLDER = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


def older_meaning(word: str, place: Place) -> Scalar:
    """The value of the unquoted `word` in a vendor's file, where `True` and `yes` are booleans.

    Raises ProjectError as `meaning` does. Source: YAML 1.1, as PyYAML resolves it.
    """
    lower = word.lower()
    if lower in _OLDER and word in (lower, lower.capitalize(), lower.upper()):
        return _OLDER[lower]
    return word if _TRAP.fullmatch(word) else meaning(word, place)


def meaning(word: str, place: Place) -> Scalar:
    """The value of the unquoted `word`; `place` is where an error points.

    Raises ProjectError for an ambiguous word (`yes`, `off`, `True`, …) and for a number that is not
    finite or has more than 64 bits. Source: YAML 1.2.2, section 10.3.2.
    """
    if word in _WORDS:
        return _WORDS[word]
    if _TRAP.fullmatch(word):
        hint = f'write true or false, or "{word}" for text'
        raise ProjectError(f"`{word}` means text to some and a boolean to others", place, hint)
    if _INTEGER.fullmatch(word):
        if len(word) > MAX_INTEGER_CHARACTERS or not -(2**63) <= int(word, 0) < 2**63:
            raise ProjectError("the number does not fit in 64 bits", place, "quote it for text")
        return int(word, 0)
    if _NOT_FINITE.fullmatch(word):
        raise ProjectError(f"`{word}` is not a finite number", place, "quote it for text")
    if not _NUMBER.fullmatch(word):
        return word
    if math.isinf(float(word)):
        raise ProjectError(f"`{word}` is not a finite number", place, "quote it for text")
    return float(word)
