"""Guilt: whom to blame for what the answers lose, and what for.

    lost      the share of an answer's energy that is noise when one node alone is quantized: what
              it makes itself, not what it inherits
    saved     what of it would not be lost, had its misfitting grids (pipeline.debug.fit) the size
              of the numbers on them. A grid too wide: what it loses alone, times its excess. One
              that clips may be meant to, in front of what saturates: tried with one that does not

A node that grids of the right size would mend is named before one that is merely sensitive, and so
needs more bits, as long as that shows: from SHOWS of the largest loss on. To blame for a broken
build is what matters: the first, from MATTERS on, else the most sensitive.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import yaml

from pipeline.debug.compared import Comparison, Guilty, rounded
from pipeline.debug.fit import Fit, fits, refitted
from pipeline.debug.probing import Probing, Sums
from pipeline.debug.sensitivity import Patient, groups_of, sensitivities
from pipeline.errors import ProjectError
from pipeline.graph import Graph, origin
from pipeline.project.sections import Quantization
from pipeline.quant.promotion import Promoted, candidates, promoted, section
from pipeline.targets.target import Target

SHOWS = 1e-4
MATTERS = 0.1
LOW = 0.99  # the cosine of an answer below which a build is broken
KINDS: tuple[Promoted, ...] = ("int16", "cpu")


class Suspect(NamedTuple):
    node: str
    lost: float
    saved: float = 0.0
    cause: str = ""  # a remark on its grids, empty where no others would do better
    is_clipped: bool = False


class _Misfit(NamedTuple):
    """A calibration node of a regular one, and the fit of its grid."""

    node: str
    name: str
    fit: Fit


def suspects(patient: Patient) -> list[Suspect]:
    """Every node that quantizes, the guiltiest first, of equals the one nearer the input. Raises
    GraphError."""
    groups = groups_of(patient, "node")
    losses = {name: _lost(sums) for name, sums in sensitivities(patient, groups).items()}
    misfits = {name: fit for name, fit in fits(patient).items() if fit.cause}
    best: dict[str, tuple[float, _Misfit]] = {}
    for misfit, saved in _saved(patient, groups, losses, misfits):
        if saved > best.get(misfit.node, (0.0, misfit))[0]:
            best[misfit.node] = saved, misfit
    found = [
        Suspect(name, lost, *_told(*best[name])) if name in best else Suspect(name, lost)
        for name, lost in losses.items()
    ]
    shows = SHOWS * max((one.lost for one in found), default=0.0)
    return sorted(found, key=lambda s: (-s.saved if s.saved > shows else 0.0, -s.lost))


def guilty(
    comparison: Comparison,
    patient: Patient,
    optimized_float: Graph,
    target: Target,
    quantization: Quantization,
) -> Guilty | None:
    """The first suspect of a build that is broken, None of another. Raises GraphError."""
    worst = min((output.cosine for output in comparison.outputs), default=1.0)
    found = suspects(patient) if worst < LOW and comparison.samples else []
    if not found:
        return None
    most = max(found, key=lambda suspect: suspect.lost)
    first = found[0] if found[0].saved > MATTERS * most.lost else most
    (node,) = (n for n in patient.calibrated.nodes() if n.name == first.node)
    cause = first.cause if first.saved else "8 bits are too few here"
    remedy = _remedy(first, optimized_float, target, quantization)
    return Guilty(first.node, rounded(first.lost), origin(node), cause, remedy)


def _lost(sums: Sums) -> float:
    """Of the worst answer."""
    return max(one.squared / one.aa if one.aa else float(one.squared > 0.0) for one in sums)


def _saved(
    patient: Patient,
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
    clipped = [one for one in ill if one.fit.is_clipped]
    if not clipped:
        return
    by_name = {one.name: one for one in patient.nodes}
    places = [
        [refitted(by_name[n], one.fit) if n == one.name else by_name[n] for n in groups[one.node]]
        for one in clipped
    ]
    probing = Probing(patient.calibrated, places, patient.samples, patient.operators)
    for number, sums in probing.sums(patient.at_once):
        yield clipped[number], losses[clipped[number].node] - _lost(sums)


def _told(saved: float, misfit: _Misfit) -> tuple[float, str, bool]:
    return saved, misfit.fit.cause, misfit.fit.is_clipped


def _remedy(first: Suspect, graph: Graph, target: Target, quantization: Quantization) -> str:
    """One line of YAML: other ranges where a grid is to blame, else more bits where there are."""
    if first.saved:
        return f"calibration: {{method: {'max' if first.is_clipped else 'mse'}}}"
    for kind in KINDS:
        try:
            known = candidates(graph, target, quantization, kind)
        except ProjectError:  # the chip has nothing to promote to
            continue
        if first.node in known:
            asked = promoted(graph, target, quantization, [first.node], kind)
            said = {"quantization": section(asked)}
            return yaml.safe_dump(said, default_flow_style=True, width=10**6).strip()[1:-1]
    return ""
