"""Guilt: whom to blame for what the answers lose, and what for.

    lost      the share of an answer's energy that is noise when one node alone is quantized: what
              it makes itself, not what it inherits
    saved     what of it would not be lost, had its misfitting grids (pipeline.debug.fit) the size
              of the numbers on them: tried, not guessed

A node that grids of the right size would mend is named before one that is merely sensitive, and so
needs more bits, as long as that shows: from SHOWS of the largest loss on. To blame for a broken
build is what matters: the first, from MATTERS on, else the most sensitive.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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


class _Trial(NamedTuple):
    """Misfitting grids of a node, by calibration node, that are of one kind."""

    node: str
    misfits: dict[str, Fit]


def suspects(patient: Patient) -> list[Suspect]:
    """Every node that quantizes, the guiltiest first, of equals the one nearer the input. Raises
    GraphError."""
    groups = groups_of(patient, "node")
    losses = {name: _lost(sums) for name, sums in sensitivities(patient, groups).items()}
    trials = list(_trials(groups, {name: fit for name, fit in fits(patient).items() if fit.cause}))
    best: dict[str, tuple[float, _Trial]] = {}
    for trial, lost in zip(trials, _tried(patient, groups, trials), strict=True):
        saved = losses[trial.node] - lost
        if saved > best.get(trial.node, (0.0, trial))[0]:
            best[trial.node] = saved, trial
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


def _trials(groups: Mapping[str, tuple[str, ...]], misfits: Mapping[str, Fit]) -> Iterator[_Trial]:
    """What clips may be meant to, in front of what saturates: it is tried apart."""
    for node, group in groups.items():
        for is_clipped in (False, True):
            kind = {n: misfits[n] for n in group if n in misfits}
            kind = {n: fit for n, fit in kind.items() if fit.is_clipped == is_clipped}
            if kind:
                yield _Trial(node, kind)


def _tried(
    patient: Patient, groups: Mapping[str, tuple[str, ...]], trials: Sequence[_Trial]
) -> Iterator[float]:
    """What each node would lose on grids that fit."""
    if not trials:
        return iter(())
    by_name = {one.name: one for one in patient.nodes}
    places = [
        [
            refitted(by_name[name], trial.misfits[name]) if name in trial.misfits else by_name[name]
            for name in groups[trial.node]
        ]
        for trial in trials
    ]
    probing = Probing(patient.calibrated, places, patient.samples, patient.operators)
    return map(_lost, probing.sums(patient.at_once))


def _told(saved: float, trial: _Trial) -> tuple[float, str, bool]:
    causes = dict.fromkeys(fit.cause for fit in trial.misfits.values())
    return saved, "; ".join(causes), any(fit.is_clipped for fit in trial.misfits.values())


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
