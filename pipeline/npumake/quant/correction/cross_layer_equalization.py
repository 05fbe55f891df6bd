"""Cross-layer equalization: makes channels that share a grid equally large.

(M. Nagel, M. van Baalen, T. Blankevoort, M. Welling: Data-Free Quantization through Weight
Equalization and Bias Correction, ICCV 2019, arXiv 1906.04721, section 4.1.)

For a group (correction.rescale_groups), with r_out[c] the largest weight of channel c among its
makers and r_in[c] that among its readers,

    s[c] = sqrt(r_out[c] / r_in[c])      makes both sqrt(r_out[c] * r_in[c])

A layer reads one group and makes the next, so this repeats until no factor moves. The bias counts
as one more weight of its channel: otherwise a channel that is mostly bias (a dead filter behind a
BatchNormalization) would grow beyond all others, and its tensor's grid with it. This replaces the
paper's absorption of high biases.

ReLU6 and the tensors around it stay: the paper trains or replaces it. Here the function of the
network does not change.
"""

from __future__ import annotations

import numpy as np

from npumake.graph import Graph, Node
from npumake.quant.correction.rescale_groups import RescaleGroup, find_rescale_groups, rescaled

MAX_SWEEPS = 40
MAX_LOG_FACTOR = 1e-3  # converged below it


def equalize(graph: Graph) -> Graph:
    """A copy of a float graph that computes the same, with equalized channels."""
    return rescaled(graph, equalization_factors(graph))


def equalization_factors(graph: Graph) -> dict[str, list[float]]:
    """The divisors of the channels of each group, by its name."""
    groups = [group for group in find_rescale_groups(graph) if not group.norms]
    return {b.name: s.tolist() for b, s in zip(groups, factors(groups), strict=True)}


def factors(groups: list[RescaleGroup]) -> list[np.ndarray]:
    """The divisors of the channels of each group, (channels,) each."""
    layers = {n: w for group in groups for n, w in (group.makers | group.readers).items()}
    largest = {node: np.abs(linear.kernel()).max(axis=3) for node, linear in layers.items()}
    biases = {node: np.abs(linear.bias()) for node, linear in layers.items()}
    total = [np.ones(group.channels) for group in groups]
    for _ in range(MAX_SWEEPS):
        moved = 0.0
        for group, whole in zip(groups, total, strict=True):
            s = _factor(group, largest, biases)
            for node in group.makers:
                largest[node] /= s.reshape(*largest[node].shape[:2], 1)
                biases[node] /= s
            for node in group.readers:
                largest[node] *= s.reshape(len(largest[node]), 1, -1)
            whole *= s
            moved = max(moved, float(np.abs(np.log(s)).max(initial=0.0)))
        if moved < MAX_LOG_FACTOR:
            break
    return total


def _factor(
    group: RescaleGroup, largest: dict[Node, np.ndarray], biases: dict[Node, np.ndarray]
) -> np.ndarray:
    """sqrt(r_out / r_in); 1 for a channel without makers or readers."""
    sizes = [largest[node].max(axis=2).reshape(-1) for node in group.makers]
    shifts = [biases[node] for node in group.makers]
    r_out = np.max([*sizes, *shifts], axis=0)
    r_in = np.max([largest[node].max(axis=1).reshape(-1) for node in group.readers], axis=0)
    alive = (r_out > 0) & (r_in > 0)
    return np.sqrt(np.divide(r_out, r_in, where=alive, out=np.ones(group.channels)))
