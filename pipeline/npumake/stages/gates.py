"""gates: the build stops here where a condition is not met.

The verdict has been kept by then, so that a build that fails again does not measure again, and all
that was made lies in `out/` to be looked at.
"""

from __future__ import annotations

from npumake.errors import GateError, Route
from npumake.evaluate.verdict import Verdict
from npumake.project.sections import Gate


def gates(verdict: Verdict, gates: tuple[Gate, ...]) -> Verdict:
    """`gates` are read for where they stand. Raises GateError for the first that is not met."""
    for gate in verdict.unmet:
        more = len(verdict.unmet) - 1
        what = gate.what + (f" ({more} more of {len(gates)} gates fail)" if more else "")
        raise GateError(what, Route(f"gates.{gate.index}"), gate.advice)
    return verdict
