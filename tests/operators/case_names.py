"""Cases by name, of all three tables."""

from __future__ import annotations

from operators.case import Case
from operators.cases import CASES
from operators.ones import ones
from operators.onnx_cases import onnx_cases


def case_of(name: str) -> Case:
    """Of the table, with a size of one, or of ONNX's own."""
    if name in CASES:
        return CASES[name]
    return ones()[name] if name in ones() else onnx_cases()[name]
