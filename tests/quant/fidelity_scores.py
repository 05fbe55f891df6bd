"""Fidelity scores of samples with losses of their own."""

from __future__ import annotations

import numpy as np

from npumake.quant.search.fidelity import FidelitySamples, FidelityScore


def score_of_losses(*losses: float) -> FidelityScore:
    """Of samples that each have their own loss: without one, the mean of the others."""
    rest = [
        np.mean([loss for other, loss in enumerate(losses) if other != index])
        for index in range(len(losses))
    ]
    close = FidelitySamples(1 - float(np.mean(losses)), tuple(1 - float(loss) for loss in rest))
    return FidelityScore(close, close)
