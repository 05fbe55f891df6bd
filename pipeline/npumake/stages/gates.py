"""gates: stops the build if a gate fails.

The verdict is already stored, so a failing build is not measured again, and all artifacts are in
`out/`.
"""

from __future__ import annotations

from npumake.errors import GateError, Route
from npumake.evaluate.verdict import Verdict
from npumake.project.sections import Gate


def gates(verdict: Verdict, gates: tuple[Gate, ...]) -> Verdict:
    """The verdict. `gates` are read for their places. Raises GateError for the first unmet gate."""
    for gate in verdict.unmet:
        hidden = len(verdict.unmet) - 1
        message = gate.what + (f" ({hidden} more of {len(gates)} gates fail)" if hidden else "")
        raise GateError(message, Route(f"gates.{gate.index}"), gate.advice)
    return verdict
