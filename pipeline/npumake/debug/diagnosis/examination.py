"""Examination: the facts about one model that the rules share, each computed on first use.

lost      noise of the worst output as a share of its energy, when one node alone is quantized;
          errors inherited from other nodes do not count
saved     the part of `lost` that fitting grids would avoid (range_fit): for too wide a grid,
          its own loss times its excess; for a clipping grid, measured without the clipping
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import cached_property
from typing import NamedTuple

import numpy as np

from npumake.debug.calibration_nodes import CalibrationNode
from npumake.debug.diagnosis.inferred_method import InferredMethod, infer_method, odd_weights
from npumake.debug.diagnosis.range_fit import Fit, fits
from npumake.debug.diagnosis.scale_consistency import with_explicit_clamps
from npumake.debug.diagnosis.wrong_scales import wrong_scales
from npumake.debug.probing import Probing, Sums
from npumake.debug.sensitivity import ModelUnderTest, groups_of, sensitivities
from npumake.quant.calibration.activation_aware_ranges import (
    Interval,
    clipping_errors,
    saturating_tensors,
)


class Misfit(NamedTuple):
    """A regular node, one of its calibration nodes by `name`, the fit of that one's grid, and the
    loss that a fitting grid would avoid."""

    node: str
    name: str
    fit: Fit
    saved: float = 0.0


class Examination:
    """A model under test, or some of its regular nodes; every fact raises GraphError."""

    def __init__(self, model: ModelUnderTest, nodes: Collection[str] | None = None) -> None:
        self._original = model
        self._nodes = nodes

    @cached_property
    def model(self) -> ModelUnderTest:
        """The model with explicit clamps."""
        return with_explicit_clamps(self._original)

    @cached_property
    def wrong_scales(self) -> Mapping[str, float]:
        """Calibration node -> the factor by which its scale is wrong."""
        return wrong_scales(self._original)

    @cached_property
    def losses(self) -> Mapping[str, float]:
        """The loss by node, in graph order."""
        sums_by_node = sensitivities(self.model, self._groups)
        return {name: noise_share(sums) for name, sums in sums_by_node.items()}

    @cached_property
    def saturating(self) -> frozenset[str]:
        """The float tensors whose readers all saturate."""
        return saturating_tensors(self.model.real)

    @cached_property
    def method(self) -> InferredMethod | None:
        """The calibration method behind the scales. Some nodes alone do not tell it."""
        if self._nodes is not None:
            return None
        every = self._range_fits
        return infer_method(self.model, every, _before_clipping(self.model, every))

    @cached_property
    def fits(self) -> Mapping[str, Fit]:
        """The fit of every grid, and whether it breaks the method of all others."""
        every = dict(self._range_fits)
        every |= {} if self.method is None else _odd(every, self.method)
        return every | {n: every[n]._replace(odd="max", is_exact=True) for n in odd_weights(every)}

    @cached_property
    def misfits(self) -> tuple[Misfit, ...]:
        """The grids that do not fit, by node and calibration node."""
        named = {name: fit for name, fit in self.fits.items() if fit.cause}
        every = [
            Misfit(node, name, named[name])
            for node, group in self._groups.items()
            for name in group
            if name in named
        ]
        return (*self._wide(every), *self._not_wide(every))

    @cached_property
    def _groups(self) -> Mapping[str, tuple[str, ...]]:
        """Regular node -> its calibration nodes, in graph order."""
        every = groups_of(self.model, "node")
        return {n: every[n] for n in every if self._nodes is None or n in self._nodes}

    @cached_property
    def _range_fits(self) -> Mapping[str, Fit]:
        """Without the clipping that a saturating activation hides: it is intended."""
        names = {name for group in self._groups.values() for name in group}
        every = fits(self.model, names)
        hidden = _harmless_clipping(self.model, every)
        return every | {name: every[name]._replace(clipped=0.0) for name in hidden}

    def _wide(self, misfits: list[Misfit]) -> Iterator[Misfit]:
        wide = [misfit for misfit in misfits if misfit.fit.is_wide]
        alone = sensitivities(self.model, {misfit.name: (misfit.name,) for misfit in wide})
        for misfit in wide:
            own = noise_share(alone[misfit.name]) * misfit.fit.excess
            yield misfit._replace(saved=min(own, self.losses[misfit.node]))

    def _not_wide(self, misfits: list[Misfit]) -> Iterator[Misfit]:
        model, groups = self.model, self._groups
        clipped = [misfit for misfit in misfits if not misfit.fit.is_wide]
        if not clipped:
            return
        by_name = {node.name: node for node in model.nodes}
        places = [
            [misfit.fit.fresh if n == misfit.name else by_name[n] for n in groups[misfit.node]]
            for misfit in clipped
        ]
        probing = Probing(model.calibrated, places, model.probed, model.operators)
        for number, sums in probing.sums(model.at_once):
            misfit = clipped[number]
            yield misfit._replace(saved=self.losses[misfit.node] - noise_share(sums))


def noise_share(sums: Sums) -> float:
    """Noise over energy of the worst output."""
    return max(
        agreement.squared / agreement.aa if agreement.aa else float(agreement.squared > 0.0)
        for agreement in sums
    )


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
        for tensor, behind in clipping_errors(model.real, ends).items()
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
