"""Ranks the causes of an output error: which nodes, and the faults of their scales.

Every rule is applied (diagnosis.rules). Faults come first: scales that contradict each other, then
misfitting grids by the loss that they cause (diagnosis.examination). A fault counts from
VISIBLE_SHARE of the largest loss on; a scale that breaks the method of all others counts always
(inferred_method). Clipping behind a clipped tensor is inherited. The remaining nodes are sensitive
without a fault; they need more bits.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from npumake.debug.compared import Comparison, WorstNode, rounded
from npumake.debug.diagnosis.bias_scale_checks import bias_scale_contradictions
from npumake.debug.diagnosis.examination import Examination, Misfit
from npumake.debug.diagnosis.rules import Finding, findings
from npumake.debug.diagnosis.scale_consistency import with_explicit_clamps
from npumake.debug.diagnosis.suggestions import CalibrationInputs, remedied
from npumake.debug.sensitivity import ModelUnderTest, sensitivities
from npumake.graph import Graph, Node, Value, origin, reads
from npumake.graph.qdq import QDQ_OPERATORS
from npumake.kernels.measure import worst
from npumake.quant.precision.placement import SAME_GRID_OPERATORS
from npumake.quant.qdq.brought_grids import LOAD

VISIBLE_SHARE = 1e-6
NEARLY_AS_CLIPPED = 1.25  # above it, clipping is not inherited: every range may be too small
ROUNDING_CHANCE = 10.0  # times a loss: what another rounding may gain by chance
COSTLY_SHARE = 0.01  # of the largest loss: a range of ours that costs less breaks no output
BROKEN_COSINE = 0.99  # below it for an output, a build is broken


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


def worst_node(
    comparison: Comparison, model: ModelUnderTest, inputs: CalibrationInputs
) -> WorstNode | None:
    """The first cause of a broken build, with a suggestion; None if the build is not broken.
    Raises GraphError."""
    if not comparison.samples or not _is_broken(comparison, model, inputs):
        return None
    causes = rank_causes(model)
    first = next(iter(causes if inputs.recipe.method == LOAD else costly(causes)), None)
    if first is None:
        return None
    (node,) = (n for n in model.calibrated.nodes() if n.name == first.node)
    cause = first.cause or "8 bits are too few here"
    remedy = remedied(inputs, first.node, bool(first.cause), BROKEN_COSINE)
    facts = (first.node, rounded(first.lost), origin(node), cause)
    if remedy is None:
        return WorstNode(
            *facts, "", search=inputs.search, input_settings=inputs.words.input_settings
        )
    search = "" if remedy.after >= BROKEN_COSINE else inputs.search
    tried = (remedy.before, remedy.after)
    return WorstNode(*facts, remedy.yaml, tried, search, inputs.words.input_settings)


def costly(causes: Sequence[RankedCause]) -> list[RankedCause]:
    """The causes that cost enough to explain a broken output, in their order. In a model calibrated
    here no scale is a typing error: an odd range that costs nothing is no cause."""
    threshold = COSTLY_SHARE * max((cause.lost for cause in causes), default=0.0)
    return [cause for cause in causes if cause.lost >= threshold]


def _is_broken(comparison: Comparison, model: ModelUnderTest, inputs: CalibrationInputs) -> bool:
    """Whether an output's cosine is below BROKEN_COSINE. A model that is quantized already is
    its own reference: it is compared without its grids, and contradicting scales suffice."""
    cosines = [output.cosine for output in comparison.outputs]
    if inputs.recipe.method == LOAD:
        if bias_scale_contradictions(model.calibrated, model.nodes):
            return True
        model = with_explicit_clamps(model)
        every = {"": tuple(node.name for node in model.nodes)}
        cosines += [sums.cosine for sums in sensitivities(model, every)[""]]
    return not worst(cosines) >= BROKEN_COSINE
