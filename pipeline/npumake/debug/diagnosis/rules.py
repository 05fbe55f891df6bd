"""The rules of the diagnosis. Each looks for one kind of cause in a model.

Contradictions come first, because no calibration method produces them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from npumake.debug.diagnosis.bias_scale_checks import bias_scale_contradictions
from npumake.debug.diagnosis.examination import Examination, Misfit
from npumake.debug.diagnosis.range_fit import Kind
from npumake.debug.diagnosis.scale_consistency import scale_checks, unused_negative_codes


class Finding(NamedTuple):
    """A remark on the grids of a node. `misfit` is the grid that does not fit its values; None
    if scales contradict each other."""

    node: str
    cause: str
    misfit: Misfit | None = None


Rule = Callable[[Examination], list[Finding]]


def wrong_output_scales(model: Examination) -> list[Finding]:
    """Scales that the rest of the model was not quantized for. A tensor counts for the node that
    produces it."""
    remark = "the scale of its output is {:.4g} times the one that its readers were quantized for"
    factors = model.wrong_scales
    return [
        Finding(owner, remark.format(1 / factors[node.name]))
        for node in model.model.nodes
        if node.name in factors
        for owner in node.owners
    ]


def unused_codes(model: Examination) -> list[Finding]:
    """Negative codes behind a Relu, in a model whose scales are checked by its biases."""
    calibrated, nodes = model.model.calibrated, model.model.nodes
    if not scale_checks(calibrated, nodes):
        return []
    return [Finding(*remark) for remark in unused_negative_codes(calibrated, nodes).items()]


def contradicting_biases(model: Examination) -> list[Finding]:
    """Biases and readers with other scales than their inputs, but for those of a wrong scale."""
    wrong = [node for node in model.model.nodes if node.name in model.wrong_scales]
    excused = {name for node in wrong for name, _ in node.reads}
    remarks = bias_scale_contradictions(model.model.calibrated, model.model.nodes)
    return [Finding(*remark) for remark in remarks.items() if remark[0] not in excused]


def wide_ranges(model: Examination) -> list[Finding]:
    """Ranges much wider than the values: bits are unused."""
    return _misfits(model, "wide")


def odd_ranges(model: Examination) -> list[Finding]:
    """Ranges that break the calibration method which all others follow."""
    return _misfits(model, "odd")


def shifted_ranges(model: Examination) -> list[Finding]:
    """Wrong zero points: codes are unused on one side and missing on the other."""
    return _misfits(model, "shifted")


def clipped_ranges(model: Examination) -> list[Finding]:
    """Ranges narrower than the values."""
    return _misfits(model, "clipped")


RULES: tuple[Rule, ...] = (
    wrong_output_scales,
    unused_codes,
    contradicting_biases,
    wide_ranges,
    odd_ranges,
    shifted_ranges,
    clipped_ranges,
)


def findings(model: Examination) -> list[Finding]:
    return [finding for rule in RULES for finding in rule(model)]


def _misfits(model: Examination, kind: Kind) -> list[Finding]:
    own = (misfit for misfit in model.misfits if misfit.fit.kind == kind)
    return [Finding(misfit.node, misfit.fit.cause, misfit) for misfit in own]
