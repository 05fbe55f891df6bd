"""Sensitive tensors: the few tensors whose 8 bits make most of the output noise.

    noise[t]     1 - closeness where tensor t alone is quantized to 8 bits and all else is float,
                 weights too
    cost[t]      the operations of the nodes that compute with t
    sensitive    the fewest tensors that make NOISE_SHARE of the noise of all that could be int16,
                 and all of it but BEARABLE_NOISE

Tensors are taken by noise for their cost, or by noise, whichever order removes more of it within
the budget (search.int16_budget). The share includes nodes in int16 already and those to which it
spreads on this chip. A node that outputs int16 from 8 bits accumulates as before and costs nothing.
Weights keep their 8 bits: int16 does not reduce their noise, so it does not count.

The noise of the other tensors remains, and boxes tolerate little of it at high overlaps: of
UltraFace on rdk-x5, by 60 pictures of ImageNet, 88 % of mAP at .50:.95 is kept where 0.0034
remains, 96 where 0.001, and 98 where BEARABLE_NOISE does, as with no tensor in 8 bits. One tensor
makes three quarters of the noise there, so no share of the noise alone bounds the rest.

The noise comes from probes (search.tensor_noise).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

from npumake.engine.fusion import result
from npumake.graph import Node
from npumake.quant.precision.int16_share import typed_share
from npumake.quant.precision.precision_candidates import operations, readers, with_tensors
from npumake.quant.precision.precision_plan import PrecisionPlan
from npumake.quant.precision.type_propagation import MOVING_OPERATORS, WIDE
from npumake.quant.search.evaluator import Evaluator, RescaledModel
from npumake.quant.search.int16_budget import SENSITIVE_LIMIT, affordable
from npumake.quant.search.int16_tensors import may_be_int16, plans
from npumake.quant.search.recipe import Recipe
from npumake.quant.search.tensor_noise import narrow_grid, probe_count, tensor_noise

NOISE_SHARE = 0.97
BEARABLE_NOISE = 0.0005


def find_sensitive_tensors(
    recipe: Recipe, base: RescaledModel, evaluator: Evaluator, limit: float | None = None
) -> tuple[str, ...]:
    """The names of the tensors for int16 beside the recipe's nodes, in graph order. `limit`
    replaces that of the project.

    Raises ProjectError for an unknown name in the project's `quantization`.
    """
    graph, target = base.graph, evaluator.target
    types = with_tensors(graph, evaluator.quantization, recipe.wide)
    plan, free = plans(graph, types, target)
    read = {name: nodes for name, nodes in _read(plan, free).items() if name in recipe.ranges}
    if not read:
        return ()
    grids = {name: narrow_grid(name, recipe, target) for name in read}
    noise = tensor_noise(base, grids, evaluator, probe_count(len(grids)))
    noisy = _noisiest(noise)
    worthy = sorted(noisy, key=lambda name: -noise[name] / sum(map(operations, read[name])))

    def share_of(names: Sequence[str]) -> float:
        together = with_tensors(graph, evaluator.quantization, (*recipe.wide, *names))
        return typed_share(graph, plan, together, target)

    limit = evaluator.int16_limit if limit is None else limit
    limit = SENSITIVE_LIMIT if limit is None else limit
    # Cheap tensors may leave no room for the noisiest.
    ways = [affordable(order, share_of, limit) for order in (worthy, noisy)]
    chosen = min(ways, key=lambda names: _left(noise, names))
    return tuple(name for name in read if name in chosen)


def _read(plan: PrecisionPlan, free: PrecisionPlan) -> dict[str, list[Node]]:
    """By tensor the nodes that compute with it, where the plan has 8 bits and `free`, a plan with
    int16 wherever possible, has int16 at all its uses."""
    by_tensor: dict[str, list[Node]] = {}
    for node in plan.nodes:
        output = result(node)
        places = [place for place in readers(output) if place in plan.reads]
        is_narrow = plan.makes.get(output, WIDE) != WIDE and node.op_type not in MOVING_OPERATORS
        if is_narrow and places and may_be_int16(output, plan, free):
            by_tensor[str(output.name)] = list(dict.fromkeys(reader for reader, _ in places))
    return by_tensor


def _left(noise: Mapping[str, float], chosen: Collection[str]) -> float:
    """The noise of the tensors that are not chosen."""
    return math.fsum(loss for name, loss in noise.items() if name not in chosen)


def _noisiest(noise: Mapping[str, float]) -> list[str]:
    """The fewest tensors that leave at most BEARABLE_NOISE, and at most 1 - NOISE_SHARE of all
    noise."""
    order = sorted(noise, key=lambda name: -noise[name])
    bearable = min((1.0 - NOISE_SHARE) * _left(noise, ()), BEARABLE_NOISE)
    counts = range(len(order) + 1)
    return order[: next(n for n in counts if _left(noise, order[:n]) <= bearable)]
