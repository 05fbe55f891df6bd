"""The most sensitive node, found without probing every node.

    block     about sqrt(n) of the n nodes, consecutive in graph order

Noise of different nodes adds up, so a block that is quantized alone loses about what its nodes lose
together. The blocks are probed first, then the nodes of the block that loses most, and of the next,
until the remaining blocks lose too little to have a more sensitive node. Where a few nodes stand
out, that takes about 2 * sqrt(n) probes.

A node that only moves values, as Reshape or MaxPool, has the grid of what it reads: the loss is
that node's which computes the values.

Noise also cancels: where a node reads the only output of another, the two may lose less together
than one of them. So a block is left out below BLOCK_SHARE of the largest loss of a node.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from npumake.debug.diagnosis.examination import noise_share
from npumake.debug.sensitivity import ModelUnderTest, groups_of, sensitivities
from npumake.quant.precision.placement import source_tensor

# Of 48 builds (six models, four methods, two chips), a block with a node of half the largest loss
# lost at least 0.61 of what that node does.
BLOCK_SHARE = 0.5


def most_sensitive(model: ModelUnderTest) -> str | None:
    """The node with the largest loss, the first of several; None if nothing is quantized. Raises
    GraphError."""
    groups = _with_own_grids(model)
    losses: dict[str, float] = {}
    for loss, block in _by_loss(model, _blocks(groups)):
        if loss < BLOCK_SHARE * max(losses.values(), default=0.0):
            break
        losses |= _losses(model, {name: groups[name] for name in block})
    return max((name for name in groups if name in losses), key=losses.__getitem__, default=None)


def _with_own_grids(model: ModelUnderTest) -> dict[str, tuple[str, ...]]:
    """The regular nodes that do more than move quantized values, with their calibration nodes."""
    values = model.real.values()
    own = {
        node.name
        for node in model.nodes
        if node.kind == "weight" or source_tensor(values[node.tensor]) is values[node.tensor]
    }
    return {n: group for n, group in groups_of(model, "node").items() if not own.isdisjoint(group)}


def _by_loss(
    model: ModelUnderTest, blocks: Sequence[Mapping[str, Sequence[str]]]
) -> list[tuple[float, Mapping[str, Sequence[str]]]]:
    """The blocks with their losses, the largest first."""
    groups = {
        str(number): [name for group in block.values() for name in group]
        for number, block in enumerate(blocks)
    }
    losses = _losses(model, groups)
    return sorted(zip(losses.values(), blocks, strict=True), key=lambda pair: -pair[0])


def _blocks(groups: Mapping[str, Sequence[str]]) -> list[Mapping[str, Sequence[str]]]:
    names, length = list(groups), math.isqrt(len(groups)) or 1
    return [
        {name: groups[name] for name in names[start : start + length]}
        for start in range(0, len(names), length)
    ]


def _losses(model: ModelUnderTest, groups: Mapping[str, Sequence[str]]) -> dict[str, float]:
    return {name: noise_share(sums) for name, sums in sensitivities(model, groups).items()}
