"""Causes in the weights of a node, in the factors of its operands, and in the colors it reads.

A node's sums are linear in them, so that a fit of theirs finds which ones the board has. The fit
takes a few elements off the clamp and is judged by others. Its scores are low: a change without a
free parameter that explains theirs as well is likelier.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from npumake.debug.dumps.evidence import EXACT, Evidence, LikelyCause
from npumake.debug.dumps.last_node import LastNode
from npumake.kernels.window import padded, windows

LAYERS = frozenset({"conv", "matmul", "fully_connected_twice"})
SUMS = frozenset({"add", "add_twice"})
MAX_CHANNELS = 6  # that are fitted, those that differ most
MAX_WEIGHTS = 700  # of a channel
SPARE = 256  # elements of a fit, beyond one for each weight
MIN_TESTED = 24  # elements that judge a fit
TOLERANCE = 1.5  # codes: theirs is rounded, and so is what was fitted
MIN_SHARE = 0.8  # of the tested elements
SCORE = 0.9
MAX_COLORS = 4


def fitted_weights(evidence: Evidence) -> LikelyCause | None:
    """With other weights, the node's sums are theirs."""
    node = evidence.node
    if node is None or node.step.op not in LAYERS or len(node.step.inputs) != 1:
        return None
    low, high = _ends(node)
    scores, changed, total = [], 0, 0
    for channel in _wrong_channels(evidence):
        computed = np.moveaxis(evidence.computed, evidence.channel_axis, 0)[channel].ravel()
        dumped = np.moveaxis(evidence.dumped, evidence.channel_axis, 0)[channel].ravel()
        taps = _taps(node, channel)
        inside = (dumped > low + EXACT) & (dumped < high - EXACT)
        fit = None if taps is None else _fit(taps, dumped, inside, (low, high))
        if fit is None:
            continue
        weights, tested, predicted = fit
        scores.append(_share(computed[tested], dumped[tested], predicted))
        own = _own_weights(node, channel)
        changed += int((np.abs(weights[:-1] - own) > 0.1 * np.abs(own).max(initial=1e-9)).sum())
        total += len(own)
    if not scores:
        return None
    words = f"weights: with other weights the sums of `{node.step.name}` are theirs, "
    words += f"in {changed} of {total} taps of {len(scores)} channels"
    figures = {"changed": changed, "taps": total, "channels": len(scores)}
    return LikelyCause("weights", SCORE * float(np.mean(scores)), words, figures)


def fitted_operands(evidence: Evidence) -> LikelyCause | None:
    """An Add whose operands have other factors."""
    node = evidence.node
    if node is None or node.step.op not in SUMS or len(node.step.inputs) != 2:
        return None
    try:
        reads = [np.broadcast_to(x, evidence.computed.shape).ravel() for x in node.reads]
    except ValueError:
        return None
    (low, high), dumped = _ends(node), evidence.dumped.ravel()
    inside = (dumped > low + EXACT) & (dumped < high - EXACT)
    basis = np.stack([*reads, np.ones(dumped.size)], axis=1)
    computed = evidence.computed.ravel()
    own_inside = (computed > low + EXACT) & (computed < high - EXACT)
    fit, own = (
        _fit(basis, y, mask, (low, high)) for y, mask in ((dumped, inside), (computed, own_inside))
    )
    if fit is None or own is None:
        return None
    factors, tested, predicted = fit
    ratios = factors[:2] / np.where(own[0][:2] == 0.0, 1.0, own[0][:2])
    score = _share(computed[tested], dumped[tested], predicted)
    words = ", ".join(
        f"`{name}` {ratio:.4g} times" for name, ratio in zip(node.step.inputs, ratios, strict=True)
    )
    sentence = f"operands: `{node.step.name}` adds {words} as much as ours"
    return LikelyCause("operands", 0.98 * score, sentence, {"ratios": [float(x) for x in ratios]})


def _ends(node: LastNode) -> tuple[float, float]:
    limits = np.iinfo(node.program.tensors[node.step.outputs[0]].dtype)
    attributes = node.step.attributes
    return float(attributes.get("low", limits.min)), float(attributes.get("high", limits.max))


def _wrong_channels(evidence: Evidence) -> Iterator[int]:
    apart = np.abs(evidence.dumped - evidence.computed) > 1.0
    rows = np.moveaxis(apart, evidence.channel_axis, 0).reshape(
        apart.shape[evidence.channel_axis], -1
    )
    counts = rows.sum(axis=1)
    for channel in np.argsort(-counts, kind="stable")[:MAX_CHANNELS]:
        if counts[channel]:
            yield int(channel)


def _taps(node: LastNode, channel: int) -> np.ndarray | None:
    """A row for each element of the channel: what its weights multiply, and 1."""
    (x,), step = node.reads, node.step
    weight = step.constants["weight"]
    if step.op != "conv":
        flat = x.reshape(-1, x.shape[-1])
        rows = flat if weight.shape[0] == flat.shape[1] else None
    else:
        rank = weight.ndim - 2
        group = int(step.attributes.get("group", 1))
        read = x.shape[1] // group
        first = channel // (weight.shape[0] // group) * read
        wide = padded(x[:, first : first + read], step.attributes["pads"], 0.0, np.float64)
        view = windows(
            wide, weight.shape[2:], step.attributes["strides"], step.attributes["dilations"]
        )  # (N, C, *kernel, *out)
        moved = np.moveaxis(view, range(2 + rank, 2 + 2 * rank), range(1, 1 + rank))
        count = read * int(np.prod(weight.shape[2:]))
        rows = moved.reshape(-1, count) if count <= MAX_WEIGHTS else None
    if rows is None or rows.shape[1] > MAX_WEIGHTS:
        return None
    return np.concatenate([rows, np.ones((len(rows), 1))], axis=1)


def _own_weights(node: LastNode, channel: int) -> np.ndarray:
    """Ours, in codes of the output for a step of the input."""
    constants = node.step.constants
    weight = constants["weight"].astype(np.float64)
    own = weight[channel].ravel() if node.step.op == "conv" else weight[:, channel]
    if "factor" in constants:
        factor = np.asarray(constants["factor"], np.float64)
    else:
        factor = constants["mantissa"] * 2.0 ** -constants["shift"].astype(np.float64)
    flat = np.atleast_1d(factor).ravel()
    return own * flat[channel if flat.size > 1 else 0]


def _fit(
    basis: np.ndarray, dumped: np.ndarray, inside: np.ndarray, ends: tuple[float, float]
) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """The coefficients, the elements that judge them, and their predictions."""
    if len(basis) != len(dumped):
        return None
    order = np.random.default_rng(0).permutation(len(dumped))
    free = order[inside[order]]
    used = free[: min(basis.shape[1] + SPARE, len(free) // 2 + basis.shape[1] // 2)]
    is_used = np.zeros(len(dumped), bool)
    is_used[used] = True
    tested = order[~is_used[order]][: 4 * SPARE]
    if len(used) < 1.2 * basis.shape[1] + 4 or len(tested) < MIN_TESTED:
        return None
    coefficients = np.linalg.lstsq(basis[used], dumped[used], rcond=1e-9)[0]
    predicted = np.clip(np.rint(basis[tested] @ coefficients), *ends)
    return coefficients, tested, predicted


def _share(computed: np.ndarray, dumped: np.ndarray, predicted: np.ndarray) -> float:
    apart = int((np.abs(dumped - computed) > TOLERANCE).sum())
    left = int((np.abs(dumped - predicted) > TOLERANCE).sum())
    return 1.0 - left / apart if apart else 0.0
