"""Guilt: whom to blame for what the answers lose, and what for.

    lost      the share of an answer's energy that is noise when one node alone is quantized: what
              it makes itself, not what it inherits
    saved     what of it would not be lost, had its misfitting grids (range_fit) the size of the
              numbers on them. A grid too wide: what it loses alone, times its excess. One
              that clips may be meant to, in front of what saturates: tried with one that does not

Faults come first, for they are nobody's choice: scales that contradict each other; then grids that
this tool would not have made, by what they cost, as long as that shows: from SHOWS of the largest
loss on, and be it nothing where all others are one method's (inferred_method). Where numbers are
cut off behind a node that has them cut off, its fault is the cause of theirs; where nothing shows
of it behind what saturates, it is meant. What is left is as sensitive as it is, and needs more
bits.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import numpy as np

from npumake.debug.calibration_nodes import CalibrationNode, without
from npumake.debug.compared import Comparison, WorstNode, rounded
from npumake.debug.diagnosis.bias_scale_checks import contradictions
from npumake.debug.diagnosis.inferred_method import Chosen, chosen, odd_weights
from npumake.debug.diagnosis.range_fit import Fit, fits
from npumake.debug.diagnosis.scale_consistency import as_meant, shifted, witnesses
from npumake.debug.diagnosis.suggestions import CalibrationInputs, remedied
from npumake.debug.diagnosis.wrong_scales import convicted
from npumake.debug.probing import Probing, Sums
from npumake.debug.sensitivity import ModelUnderTest, groups_of, sensitivities
from npumake.engine.grids import DQ, Q
from npumake.graph import Graph, Node, Value, origin, reads
from npumake.kernels.measure import worst
from npumake.quant.calibration.activation_aware_ranges import (
    Interval,
    clipping_errors,
    saturating_tensors,
)
from npumake.quant.precision.placement import SAME_GRID_OPERATORS
from npumake.quant.qdq.brought_grids import LOAD

SHOWS = 1e-6
NEARLY = 1.25  # where every range may be too small, each a fault of its own
CHANCE = 10.0  # what rounding otherwise may save of as much
LOW = 0.99  # the cosine of an answer below which a build is broken


class RankedCause(NamedTuple):
    node: str
    lost: float
    saved: float = 0.0
    cause: str = ""  # a remark on its grids, empty where no others would do better
    is_clipped: bool = False
    is_fault: bool = False


class _Misfit(NamedTuple):
    """A calibration node of a regular one, and the fit of its grid."""

    node: str
    name: str
    fit: Fit


def suspects(patient: ModelUnderTest) -> list[RankedCause]:
    """Every node that quantizes, the guiltiest first, of equals the one nearer the input. Raises
    GraphError."""
    if not patient.nodes:
        return []
    factors, patient = convicted(patient), as_meant(patient)
    every = fits(patient)
    every |= {name: every[name]._replace(clipped=0.0) for name in _meant(patient, every)}
    method = chosen(patient, every, _before_clipping(patient, every))
    every |= {} if method is None else _odd(every, method)
    every |= {n: every[n]._replace(odd="max", is_exact=True) for n in odd_weights(every)}
    groups = groups_of(patient, "node")
    losses = {name: _lost(sums) for name, sums in sensitivities(patient, groups).items()}
    best = _worst(
        _saved(patient, groups, losses, {n: fit for n, fit in every.items() if fit.cause})
    )
    shows = SHOWS * max(losses.values(), default=0.0)
    noticed = {name: max(shows, _by_readers(patient, of, losses)) for name, (_, of) in best.items()}
    faults = {
        name: of
        for name, (saved, of) in best.items()
        if of.fit.is_certain or (of.fit.is_fault and saved > noticed[name])
    }
    known = _contradicted(patient, factors)
    clipped = {name: of.fit.reach for name, of in faults.items() if of.fit.is_clipped}
    inherited = _inherited(patient.calibrated, clipped, NEARLY if method is None else math.inf)
    found = [
        RankedCause(
            name,
            lost,
            best[name][0] if name in best else 0.0,
            known.get(name) or (best[name][1].fit.cause if name in best else ""),
            name in best and best[name][1].fit.is_clipped,
            name in known or (name in faults and name not in inherited),
        )
        for name, lost in losses.items()
    ]
    return sorted(found, key=lambda s: (s.node not in known, not s.is_fault, _rank(s)))


def _meant(patient: ModelUnderTest, every: Mapping[str, Fit]) -> list[str]:
    """The calibration nodes in front of what saturates that cut off nothing to be seen behind it:
    nothing made of it moves by a step of its own grid."""
    made = {one.tensor: one for one in patient.nodes if one.kind == "activation"}
    ends = {
        tensor: (_interval(every[one.name].fresh), _interval(one))
        for tensor, one in made.items()
        if one.name in every and every[one.name].is_clipped and one.axis is None
    }
    return [
        made[tensor].name
        for tensor, behind in clipping_errors(without(patient.calibrated), ends).items()
        if all(name in made and by < np.min(made[name].scale) for name, by in behind.items())
    ]


def _interval(one: CalibrationNode) -> Interval:
    low, high = one.limits
    return float(np.min(low)), float(np.max(high))


def _before_clipping(patient: ModelUnderTest, every: Mapping[str, Fit]) -> list[str]:
    """The calibration nodes before the first that no method of this tool would have cut off so far:
    behind it numbers may be others."""
    found: list[str] = []
    for one in patient.nodes:
        fit = every.get(one.name)
        if fit is not None and fit.is_clipped and fit.is_fault:
            break
        found += [one.name] if fit is not None else []
    return found


def _odd(every: Mapping[str, Fit], chosen: Chosen) -> dict[str, Fit]:
    return {
        name: every[name]._replace(
            fresh=chosen.fresh[name], odd=chosen.method, is_exact=chosen.is_exact
        )
        for name in chosen.odd
    }


def _worst(misfits: Iterable[tuple[_Misfit, float]]) -> dict[str, tuple[float, _Misfit]]:
    """Of each node the misfit that costs most, faults first. One that is certain may cost
    nothing."""
    best: dict[str, tuple[float, _Misfit]] = {}
    for misfit, saved in misfits:
        before = best.get(misfit.node)
        if saved <= 0.0 and not misfit.fit.is_certain:
            continue
        if before is None or (before[1].fit.is_fault, before[0]) < (misfit.fit.is_fault, saved):
            best[misfit.node] = max(saved, 0.0), misfit
    return best


def _by_readers(patient: ModelUnderTest, misfit: _Misfit, losses: Mapping[str, float]) -> float:
    """What those lose that read the tensor, where it is cut off in front of what saturates: less
    than a step of theirs is (npumake.quant.calibration.activation_aware_ranges)."""
    if not misfit.fit.is_clipped or misfit.fit.is_shifted:
        return 0.0
    (one,) = (one for one in patient.nodes if one.name == misfit.name)
    readers = list(_readers(patient.calibrated.values()[one.real]))
    is_flat = one.tensor in saturating_tensors(without(patient.calibrated))
    if not is_flat and any(node.op_type != "Softmax" for node in readers):
        return 0.0
    return CHANCE * max((losses.get(str(node.name), 0.0) for node in readers), default=0.0)


def _readers(value: Value) -> Iterator[Node]:
    """Who computes with the values; what only moves them is looked through."""
    waiting = [*value.uses()]
    while waiting:
        reader = waiting.pop(0).node
        if reader.op_type in (*SAME_GRID_OPERATORS, Q, DQ):
            waiting[:0] = reader.outputs[0].uses()
        else:
            yield reader


def _rank(one: RankedCause) -> float:
    return -(one.saved if one.is_fault and one.saved else one.lost)


def _contradicted(patient: ModelUnderTest, factors: Mapping[str, float]) -> dict[str, str]:
    """Remarks on the nodes whose scales the rest of the model contradicts: of a tensor whose own
    scale is wrong those that make it, not those that read it."""
    wrong = [one for one in patient.nodes if one.name in factors]
    read = {name for one in wrong for name, _ in one.reads}
    known = contradictions(patient.calibrated, patient.nodes)
    remark = "the scale of what it makes is {:.4g} times the one that its readers were made for"
    told = {name: remark.format(1 / factors[one.name]) for one in wrong for name in one.owners}
    if witnesses(patient.calibrated, patient.nodes):
        told = shifted(patient.calibrated, patient.nodes) | told
    return {name: said for name, said in known.items() if name not in read} | told


def _inherited(graph: Graph, clipped: Mapping[str, float], nearly: float) -> set[str]:
    """Those of these nodes, by reach, that stand behind another that is cut off `nearly` as far:
    what is too large for one grid is too large for those behind it."""
    reached: dict[Value, float] = {}
    found: set[str] = set()
    for node in graph.nodes():
        before = min(
            (reached[value] for value in reads(node) if value in reached), default=math.inf
        )
        own = clipped.get(str(node.name), math.inf)
        if max(own, before) < math.inf and before <= nearly * own:
            found.add(str(node.name))
        if min(own, before) < math.inf:
            reached.update(dict.fromkeys(node.outputs, min(own, before)))
    return found


def guilty(
    comparison: Comparison, patient: ModelUnderTest, making: CalibrationInputs
) -> WorstNode | None:
    """The first suspect of a build that is broken, None of another. Raises GraphError."""
    if not comparison.samples or not _is_broken(comparison, patient, making):
        return None
    first = next(iter(suspects(patient)), None)
    if first is None:
        return None
    (node,) = (n for n in patient.calibrated.nodes() if n.name == first.node)
    cause = first.cause or "8 bits are too few here"
    remedy = remedied(making, first.node, bool(first.cause), LOW)
    told = (first.node, rounded(first.lost), origin(node), cause)
    if remedy is None:
        return WorstNode(*told, "", search=making.search, fed=making.words.fed)
    search = "" if remedy.after >= LOW else making.search
    tried = (remedy.before, remedy.after)
    return WorstNode(*told, remedy.yaml, tried, search, making.words.fed)


def _is_broken(comparison: Comparison, patient: ModelUnderTest, making: CalibrationInputs) -> bool:
    """Whether an answer is far off. A model that brings grids is what it is compared with: there
    they are taken out, and scales that contradict each other are enough."""
    cosines = [output.cosine for output in comparison.outputs]
    if making.recipe.method == LOAD:
        if contradictions(patient.calibrated, patient.nodes):
            return True
        patient = as_meant(patient)
        every = {"": tuple(one.name for one in patient.nodes)}
        cosines += [sums.cosine for sums in sensitivities(patient, every)[""]]
    return not worst(cosines) >= LOW


def _lost(sums: Sums) -> float:
    """Of the worst answer."""
    return max(one.squared / one.aa if one.aa else float(one.squared > 0.0) for one in sums)


def _saved(
    patient: ModelUnderTest,
    groups: Mapping[str, tuple[str, ...]],
    losses: Mapping[str, float],
    misfits: Mapping[str, Fit],
) -> Iterator[tuple[_Misfit, float]]:
    """What each node would not lose on a grid that fits."""
    ill = [
        _Misfit(node, name, misfits[name])
        for node, group in groups.items()
        for name in group
        if name in misfits
    ]
    wide = [one for one in ill if one.fit.is_wide]
    alone = sensitivities(patient, {one.name: (one.name,) for one in wide})
    for one in wide:
        yield one, min(_lost(alone[one.name]) * one.fit.excess, losses[one.node])
    clipped = [one for one in ill if not one.fit.is_wide]
    if not clipped:
        return
    by_name = {one.name: one for one in patient.nodes}
    places = [
        [one.fit.fresh if n == one.name else by_name[n] for n in groups[one.node]]
        for one in clipped
    ]
    probing = Probing(patient.calibrated, places, patient.probed, patient.operators)
    for number, sums in probing.sums(patient.at_once):
        yield clipped[number], losses[clipped[number].node] - _lost(sums)
