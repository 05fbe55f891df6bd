"""Ranks the causes of an output error: which nodes, and what is wrong with their scales.

    lost      noise of the worst output as a share of its energy, when one node alone is quantized;
              errors inherited from other nodes do not count
    saved     the part of `lost` that fitting grids would avoid (range_fit): for too wide a grid,
              its own loss times its excess; for a clipping grid, measured without the clipping

Faults come first, because no calibration method produces them: scales that contradict each other,
then misfitting grids by the loss that they cause. A fault counts from VISIBLE_SHARE of the largest
loss on; a scale that breaks the method of all others counts always (inferred_method). Clipping
behind a clipped tensor is inherited. Clipping that a saturating activation hides is intended. The
remaining nodes are sensitive without a fault; they need more bits.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import numpy as np

from npumake.debug.calibration_nodes import CalibrationNode, without
from npumake.debug.compared import Comparison, WorstNode, rounded
from npumake.debug.diagnosis.bias_scale_checks import bias_scale_contradictions
from npumake.debug.diagnosis.inferred_method import InferredMethod, infer_method, odd_weights
from npumake.debug.diagnosis.range_fit import Fit, fits
from npumake.debug.diagnosis.scale_consistency import (
    scale_checks,
    unused_negative_codes,
    with_explicit_clamps,
)
from npumake.debug.diagnosis.suggestions import CalibrationInputs, remedied
from npumake.debug.diagnosis.wrong_scales import wrong_scales
from npumake.debug.probing import Probing, Sums
from npumake.debug.sensitivity import ModelUnderTest, groups_of, sensitivities
from npumake.graph import Graph, Node, Value, origin, reads
from npumake.graph.qdq import QDQ_OPERATORS
from npumake.kernels.measure import worst
from npumake.quant.calibration.activation_aware_ranges import (
    Interval,
    clipping_errors,
    saturating_tensors,
)
from npumake.quant.precision.placement import SAME_GRID_OPERATORS
from npumake.quant.qdq.brought_grids import LOAD

VISIBLE_SHARE = 1e-6
NEARLY_AS_CLIPPED = 1.25  # above it, clipping is not inherited: every range may be too small
ROUNDING_CHANCE = 10.0  # times a loss: what another rounding may save by chance
BROKEN_COSINE = 0.99  # below it for an output, a build is broken


class RankedCause(NamedTuple):
    node: str
    lost: float
    saved: float = 0.0
    cause: str = ""  # a remark on its grids; empty if they fit
    is_clipped: bool = False
    is_fault: bool = False


class _Misfit(NamedTuple):
    """A regular node, one of its calibration nodes by `name`, and the fit of that one's grid."""

    node: str
    name: str
    fit: Fit


def rank_causes(model: ModelUnderTest) -> list[RankedCause]:
    """Every quantized node: contradicting scales first, then faults, then by loss; ties in graph
    order. Raises GraphError."""
    if not model.nodes:
        return []
    factors, model = wrong_scales(model), with_explicit_clamps(model)
    every = fits(model)
    every |= {name: every[name]._replace(clipped=0.0) for name in _harmless_clipping(model, every)}
    method = infer_method(model, every, _before_clipping(model, every))
    every |= {} if method is None else _odd(every, method)
    every |= {n: every[n]._replace(odd="max", is_exact=True) for n in odd_weights(every)}
    groups = groups_of(model, "node")
    losses = {name: _loss(sums) for name, sums in sensitivities(model, groups).items()}
    best = _worst(_saved(model, groups, losses, {n: fit for n, fit in every.items() if fit.cause}))
    shows = VISIBLE_SHARE * max(losses.values(), default=0.0)
    noticed = {name: max(shows, _by_readers(model, of, losses)) for name, (_, of) in best.items()}
    faults = {
        name: of
        for name, (saved, of) in best.items()
        if of.fit.is_certain or (of.fit.is_fault and saved > noticed[name])
    }
    remarks = _contradicted(model, factors)
    clipped = {name: of.fit.reach for name, of in faults.items() if of.fit.is_clipped}
    inherited = _inherited(
        model.calibrated, clipped, NEARLY_AS_CLIPPED if method is None else math.inf
    )
    causes = [
        RankedCause(
            name,
            loss,
            best[name][0] if name in best else 0.0,
            remarks.get(name) or (best[name][1].fit.cause if name in best else ""),
            name in best and best[name][1].fit.is_clipped,
            name in remarks or (name in faults and name not in inherited),
        )
        for name, loss in losses.items()
    ]
    return sorted(causes, key=lambda s: (s.node not in remarks, not s.is_fault, _rank(s)))


def _harmless_clipping(model: ModelUnderTest, every: Mapping[str, Fit]) -> list[str]:
    """The calibration nodes whose clipping a saturating activation hides: no tensor behind it
    changes by a step of its own grid."""
    activations = {node.tensor: node for node in model.nodes if node.kind == "activation"}
    ends = {
        tensor: (_interval(every[node.name].fresh), _interval(node))
        for tensor, node in activations.items()
        if node.name in every and every[node.name].is_clipped and node.axis is None
    }
    return [
        activations[tensor].name
        for tensor, behind in clipping_errors(without(model.calibrated), ends).items()
        if all(
            name in activations and by < np.min(activations[name].scale)
            for name, by in behind.items()
        )
    ]


def _interval(node: CalibrationNode) -> Interval:
    low, high = node.limits
    return float(np.min(low)), float(np.max(high))


def _before_clipping(model: ModelUnderTest, every: Mapping[str, Fit]) -> list[str]:
    """The calibration nodes before the first wrongly clipped one; behind it, values differ from
    those of the calibration."""
    names: list[str] = []
    for node in model.nodes:
        fit = every.get(node.name)
        if fit is not None and fit.is_clipped and fit.is_fault:
            break
        names += [node.name] if fit is not None else []
    return names


def _odd(every: Mapping[str, Fit], infer_method: InferredMethod) -> dict[str, Fit]:
    return {
        name: every[name]._replace(
            fresh=infer_method.fresh[name], odd=infer_method.method, is_exact=infer_method.is_exact
        )
        for name in infer_method.odd
    }


def _worst(misfits: Iterable[tuple[_Misfit, float]]) -> dict[str, tuple[float, _Misfit]]:
    """Node -> its most expensive misfit, faults first. A certain fault may cost nothing."""
    best: dict[str, tuple[float, _Misfit]] = {}
    for misfit, saved in misfits:
        before = best.get(misfit.node)
        if saved <= 0.0 and not misfit.fit.is_certain:
            continue
        if before is None or (before[1].fit.is_fault, before[0]) < (misfit.fit.is_fault, saved):
            best[misfit.node] = max(saved, 0.0), misfit
    return best


def _by_readers(model: ModelUnderTest, misfit: _Misfit, losses: Mapping[str, float]) -> float:
    """The loss of the tensor's readers, if it is clipped in front of a saturating activation;
    below a step of theirs, clipping is intended (quant.calibration.activation_aware_ranges)."""
    if not misfit.fit.is_clipped or misfit.fit.is_shifted:
        return 0.0
    (place,) = (place for place in model.nodes if place.name == misfit.name)
    readers = list(_readers(model.calibrated.values()[place.real]))
    is_flat = place.tensor in saturating_tensors(without(model.calibrated))
    if not is_flat and any(node.op_type != "Softmax" for node in readers):
        return 0.0
    return ROUNDING_CHANCE * max((losses.get(str(node.name), 0.0) for node in readers), default=0.0)


def _readers(value: Value) -> Iterator[Node]:
    """The nodes that compute with the value, looking through data movement and Q/DQ."""
    waiting = [*value.uses()]
    while waiting:
        reader = waiting.pop(0).node
        if reader.op_type in (*SAME_GRID_OPERATORS, *QDQ_OPERATORS):
            waiting[:0] = reader.outputs[0].uses()
        else:
            yield reader


def _rank(cause: RankedCause) -> float:
    return -(cause.saved if cause.is_fault and cause.saved else cause.lost)


def _contradicted(model: ModelUnderTest, factors: Mapping[str, float]) -> dict[str, str]:
    """Node -> remark, for nodes whose scales contradict the rest of the model. A tensor with a
    wrong scale counts for the node that produces it, not for its readers."""
    wrong = [node for node in model.nodes if node.name in factors]
    read = {name for node in wrong for name, _ in node.reads}
    by_bias = bias_scale_contradictions(model.calibrated, model.nodes)
    remark = "the scale of its output is {:.4g} times the one that its readers were quantized for"
    remarks = {
        name: remark.format(1 / factors[node.name]) for node in wrong for name in node.owners
    }
    if scale_checks(model.calibrated, model.nodes):
        remarks = unused_negative_codes(model.calibrated, model.nodes) | remarks
    return {name: text for name, text in by_bias.items() if name not in read} | remarks


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
    first = next(iter(rank_causes(model)), None)
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


def _loss(sums: Sums) -> float:
    """Noise over energy of the worst output."""
    return max(
        agreement.squared / agreement.aa if agreement.aa else float(agreement.squared > 0.0)
        for agreement in sums
    )


def _saved(
    model: ModelUnderTest,
    groups: Mapping[str, tuple[str, ...]],
    losses: Mapping[str, float],
    misfits: Mapping[str, Fit],
) -> Iterator[tuple[_Misfit, float]]:
    """Each misfit, and the loss that a fitting grid would avoid."""
    all_misfits = [
        _Misfit(node, name, misfits[name])
        for node, group in groups.items()
        for name in group
        if name in misfits
    ]
    wide = [misfit for misfit in all_misfits if misfit.fit.is_wide]
    alone = sensitivities(model, {misfit.name: (misfit.name,) for misfit in wide})
    for misfit in wide:
        yield misfit, min(_loss(alone[misfit.name]) * misfit.fit.excess, losses[misfit.node])
    clipped = [misfit for misfit in all_misfits if not misfit.fit.is_wide]
    if not clipped:
        return
    by_name = {misfit.name: misfit for misfit in model.nodes}
    places = [
        [misfit.fit.fresh if n == misfit.name else by_name[n] for n in groups[misfit.node]]
        for misfit in clipped
    ]
    probing = Probing(model.calibrated, places, model.probed, model.operators)
    for number, sums in probing.sums(model.at_once):
        yield clipped[number], losses[clipped[number].node] - _loss(sums)
