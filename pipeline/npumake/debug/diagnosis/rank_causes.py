"""Ranks the causes of an output error: which nodes, and the faults of their scales.

Every rule is applied (diagnosis.rules). Faults come first: scales that contradict each other, then
misfitting grids by the loss that they cause (diagnosis.examination). A fault counts from
VISIBLE_SHARE of the largest loss on; a scale that breaks the method of all others counts always
(inferred_method). Clipping behind a clipped tensor is inherited. The remaining nodes are sensitive
without a fault; they need more bits.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from npumake.debug.diagnosis.examination import Examination, Misfit
from npumake.debug.diagnosis.rules import Finding, findings
from npumake.debug.sensitivity import ModelUnderTest
from npumake.graph import Graph, Node, Value, reads
from npumake.graph.qdq import QDQ_OPERATORS
from npumake.quant.precision.placement import SAME_GRID_OPERATORS

VISIBLE_SHARE = 1e-6
NEARLY_AS_CLIPPED = 1.25  # above it, clipping is not inherited: every range may be too small
ROUNDING_CHANCE = 10.0  # times a loss: what another rounding may gain by chance


class RankedCause(NamedTuple):
    node: str
    lost: float
    saved: float = 0.0
    cause: str = ""  # a remark on its grids; empty if they fit
    is_clipped: bool = False
    is_fault: bool = False


def rank_causes(model: ModelUnderTest) -> list[RankedCause]:
    """Every quantized node: contradicting scales first, then faults, then by loss; ties in graph
    order. Raises GraphError."""
    if not model.nodes:
        return []
    examined = Examination(model)
    model_findings = findings(examined)
    best = _worst(finding.misfit for finding in model_findings if finding.misfit is not None)
    contradictions: dict[str, Finding] = {}  # of several of one node, the first rule's
    for finding in model_findings:
        if finding.misfit is None:
            contradictions.setdefault(finding.node, finding)
    faults = _faults(examined, best)
    causes = [
        _cause(name, lost, contradictions.get(name), best.get(name), name in faults)
        for name, lost in examined.losses.items()
    ]
    return sorted(causes, key=lambda c: (c.node not in contradictions, not c.is_fault, _rank(c)))


def cause_of(model: ModelUnderTest, node: str) -> RankedCause:
    """The cause of one node in a model with scales of ours, which contradict nothing: its misfit
    that costs most. Raises GraphError."""
    examined = Examination(model, [node])
    misfit = _worst(examined.misfits).get(node)
    return _cause(node, examined.losses[node], None, misfit, is_fault=False)


def _cause(
    node: str, lost: float, contradiction: Finding | None, misfit: Misfit | None, is_fault: bool
) -> RankedCause:
    cause = "" if misfit is None else misfit.fit.cause
    return RankedCause(
        node,
        lost,
        0.0 if misfit is None else max(misfit.saved, 0.0),
        cause if contradiction is None else contradiction.cause,
        misfit is not None and misfit.fit.is_clipped,
        contradiction is not None or is_fault,
    )


def _faults(examined: Examination, best: Mapping[str, Misfit]) -> set[str]:
    """The nodes with a fault of their own: certain, or visible and not inherited."""
    model, losses = examined.model, examined.losses
    shows = VISIBLE_SHARE * max(losses.values(), default=0.0)
    faults = {
        name: misfit.fit
        for name, misfit in best.items()
        if misfit.fit.is_certain
        or (misfit.fit.is_fault and misfit.saved > max(shows, _by_readers(examined, misfit)))
    }
    clipped = {name: fit.reach for name, fit in faults.items() if fit.is_clipped}
    nearly = NEARLY_AS_CLIPPED if examined.method is None else math.inf
    return faults.keys() - _inherited(model.calibrated, clipped, nearly)


def _worst(misfits: Iterable[Misfit]) -> dict[str, Misfit]:
    """Node -> its most expensive misfit, faults first. A certain fault may cost nothing."""
    best: dict[str, Misfit] = {}
    for misfit in misfits:
        before = best.get(misfit.node)
        if misfit.saved <= 0.0 and not misfit.fit.is_certain:
            continue
        if before is None or (before.fit.is_fault, max(before.saved, 0.0)) < (
            misfit.fit.is_fault,
            misfit.saved,
        ):
            best[misfit.node] = misfit
    return best


def _by_readers(examined: Examination, misfit: Misfit) -> float:
    """The loss of the tensor's readers, if it is clipped in front of a saturating activation;
    below a step of theirs, clipping is intended (quant.calibration.activation_aware_ranges)."""
    if not misfit.fit.is_clipped or misfit.fit.is_shifted:
        return 0.0
    model, losses = examined.model, examined.losses
    (place,) = (place for place in model.nodes if place.name == misfit.name)
    readers = list(_readers(model.calibrated.values()[place.real]))
    is_flat = place.tensor in examined.saturating
    if not is_flat and any(node.op_type != "Softmax" for node in readers):
        return 0.0
    return ROUNDING_CHANCE * max((losses.get(str(node.name), 0.0) for node in readers), default=0.0)


def _readers(value: Value) -> Iterator[Node]:
    """The nodes that compute with the value, looking through data movement and Q/DQ."""
    waiting = [use.node for use in value.uses()]
    visited: set[Node] = set()  # a Concat may read a tensor twice
    while waiting:
        reader = waiting.pop()
        if reader in visited:
            continue
        visited.add(reader)
        if reader.op_type in (*SAME_GRID_OPERATORS, *QDQ_OPERATORS):
            waiting += (use.node for use in reader.outputs[0].uses())
        else:
            yield reader


def _rank(cause: RankedCause) -> float:
    return -(cause.saved if cause.is_fault and cause.saved else cause.lost)


def _inherited(graph: Graph, clipped: Mapping[str, float], nearly: float) -> set[str]:
    """The clipped nodes behind another that clips `nearly` as much; `clipped` gives the reach by
    node. Values too large for one grid are too large for those behind it."""
    reached: dict[Value, float] = {}
    names: set[str] = set()
    for node in graph.nodes():
        before = min(
            (reached[value] for value in reads(node) if value in reached), default=math.inf
        )
        own = clipped.get(str(node.name), math.inf)
        if max(own, before) < math.inf and before <= nearly * own:
            names.add(str(node.name))
        if min(own, before) < math.inf:
            reached.update(dict.fromkeys(node.outputs, min(own, before)))
    return names
