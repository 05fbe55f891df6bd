"""CASES: the table of truth's left side. An operator is added by its modes in one of the tables."""

from __future__ import annotations

from collections.abc import Mapping

from operators.case import Case, Mode, cases
from operators.functions import FUNCTIONS
from operators.large import enlarged
from operators.moves import MOVES
from operators.resizes import RESIZES
from operators.sums import SUMS
from operators.windows import WINDOWS

MODES: Mapping[str, Mapping[str, Mode]] = {
    **FUNCTIONS, **MOVES, **RESIZES, **SUMS, **WINDOWS
}  # fmt: skip
CASES: Mapping[str, Case] = {
    case.name: case
    for operator, modes in sorted(MODES.items())
    for name, how in enlarged(operator, modes).items()
    for case in cases(operator, name, how)
}
