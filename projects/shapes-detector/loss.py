"""How wrong a prediction is: task-aligned assignment, CIoU, DFL and binary cross entropy.

A cell is a candidate of a truth when its centre lies in the truth's box. It is worth

    t = s^½ IoU^6,        s its score of the truth's class, IoU of its box with the truth's

and a truth takes its TOP most worthy cells; a cell wanted by several goes to the largest IoU.
The target of its score is t, scaled so that a truth's best cell is asked for its IoU. (TOOD, 2021;
the weights of the four losses are Ultralytics'.)
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from network import REG_MAX, STRIDES, Raw
from scenes import CLASSES, SIZE
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits as bce
from torch.nn.functional import cross_entropy, one_hot

TOP, SCORE_POWER, IOU_POWER = 10, 0.5, 6.0
BOX, SCORE, DFL, MASK = 7.5, 0.5, 1.5, 7.5
TINY = 1e-7


class Truths(NamedTuple):
    """The shapes of N images, filled up to the M of the fullest."""

    boxes: Tensor  # (N, M, 4) left, top, right, bottom in pixels
    labels: Tensor  # (N, M)
    masks: Tensor  # (N, M, SIZE / 4, SIZE / 4) 0 or 1
    there: Tensor  # (N, M) bool: not filler


class Assigned(NamedTuple):
    truth: Tensor  # (N, A): which of the M
    positive: Tensor  # (N, A) bool
    target: Tensor  # (N, A) the score asked for of the truth's class; 0 where not positive


def cell_centres() -> tuple[Tensor, Tensor]:
    """(A, 2) centres in pixels, x first, and (A, 1) strides."""
    sides = [SIZE // stride for stride in STRIDES]
    grids = [torch.cartesian_prod(torch.arange(n), torch.arange(n)).flip(1) + 0.5 for n in sides]
    strides = torch.tensor(STRIDES).repeat_interleave(torch.tensor([n * n for n in sides]))
    return torch.cat(grids) * strides[:, None], strides[:, None].float()


CENTRES, CELL = cell_centres()


def boxes_of(raw: Tensor) -> Tensor:
    """Expected distances as boxes: (N, 4 * REG_MAX, A) → (N, A, 4) in pixels."""
    bins = raw.unflatten(1, (4, REG_MAX)).softmax(2)
    distance = torch.einsum("nsba,b->nas", bins, torch.arange(REG_MAX, dtype=raw.dtype)) * CELL
    return torch.cat([CENTRES - distance[..., :2], CENTRES + distance[..., 2:]], -1)


def iou(a: Tensor, b: Tensor, complete: bool = False) -> Tensor:
    """Of boxes (..., 4); `complete`: less the distance of centres and of aspect ratios (CIoU)."""
    corner, other = torch.maximum(a[..., :2], b[..., :2]), torch.minimum(a[..., 2:], b[..., 2:])
    size_a, size_b = a[..., 2:] - a[..., :2], b[..., 2:] - b[..., :2]
    shared = (other - corner).clamp(min=0).prod(-1)
    value = shared / (size_a.prod(-1) + size_b.prod(-1) - shared + TINY)
    if not complete:
        return value
    hull = torch.maximum(a[..., 2:], b[..., 2:]) - torch.minimum(a[..., :2], b[..., :2])
    apart = (a[..., :2] + a[..., 2:] - b[..., :2] - b[..., 2:]).square().sum(-1) / 4
    angle = [torch.atan(s[..., 0] / (s[..., 1] + TINY)) for s in (size_a, size_b)]
    ratio = 4 / torch.pi**2 * (angle[0] - angle[1]).square()
    weight = (ratio / (1 - value + ratio + TINY)).detach()
    return value - apart / (hull.square().sum(-1) + TINY) - weight * ratio


@torch.no_grad()
def assigned(scores: Tensor, boxes: Tensor, truths: Truths) -> Assigned:
    """Which cells answer for which truth: scores (N, A, classes) in 0..1, boxes (N, A, 4)."""
    sides = torch.cat(
        [CENTRES - truths.boxes[:, :, None, :2], truths.boxes[:, :, None, 2:] - CENTRES], -1
    )
    inside = (sides.amin(-1) > 0) & truths.there[..., None]  # (N, M, A)
    overlap = iou(truths.boxes[:, :, None], boxes[:, None]).clamp(min=0) * inside
    of_class = scores.transpose(1, 2).gather(1, truths.labels[..., None].expand_as(overlap))
    worth = of_class**SCORE_POWER * overlap**IOU_POWER
    least = worth.topk(TOP, -1).values[..., -1:]
    chosen = inside & (worth >= least) & (worth > 0)
    truth = (overlap * chosen).argmax(1)
    chosen &= one_hot(truth, overlap.shape[1]).transpose(1, 2).bool()
    worth, overlap = worth * chosen, overlap * chosen
    scaled = worth / (worth.amax(-1, keepdim=True) + TINY) * overlap.amax(-1, keepdim=True)
    return Assigned(truth, chosen.any(1), scaled.amax(1))


def loss(raw: Raw, truths: Truths) -> Tensor:
    """The weighted sum of the four, per image."""
    scores, boxes = raw.scores.transpose(1, 2), boxes_of(raw.boxes)
    truth, positive, target = assigned(scores.sigmoid().detach(), boxes.detach(), truths)
    image, cell = positive.nonzero(as_tuple=True)
    which = truth[image, cell]
    weight, total = target[image, cell], target.sum().clamp(min=1)

    wanted = one_hot(truths.labels.gather(1, truth), len(CLASSES)) * target[..., None]
    of_scores = bce(scores, wanted, reduction="sum") / total
    box = truths.boxes[image, which]
    of_boxes = ((1 - iou(boxes[image, cell], box, complete=True)) * weight).sum() / total
    bins = raw.boxes[image, :, cell].unflatten(1, (4, REG_MAX))
    of_bins = (distribution_loss(bins, box, cell) * weight).sum() / total
    coefs, protos = raw.coefs[image, :, cell], raw.protos[image]
    of_masks = mask_loss(
        torch.einsum("pk,pkhw->phw", coefs, protos), box, truths.masks[image, which]
    )
    of_masks = of_masks.sum() / max(len(which), 1)
    return BOX * of_boxes + SCORE * of_scores + DFL * of_bins + MASK * of_masks


def distribution_loss(bins: Tensor, box: Tensor, cell: Tensor) -> Tensor:
    """Cross entropy with the two bins around each distance: (P, 4, REG_MAX), (P, 4) → (P,)."""
    sides = torch.cat([CENTRES[cell] - box[:, :2], box[:, 2:] - CENTRES[cell]], -1) / CELL[cell]
    sides = sides.clamp(0, REG_MAX - 1.01)
    low = sides.long()
    part = sides - low
    logits = bins.transpose(1, 2)
    below, above = (cross_entropy(logits, low + n, reduction="none") for n in (0, 1))
    return (below * (1 - part) + above * part).mean(-1)


def mask_loss(logits: Tensor, box: Tensor, mask: Tensor) -> Tensor:
    """Cross entropy inside the box, per pixel of it: (P, H, W), (P, 4), (P, H, W) → (P,)."""
    corner = (box * (logits.shape[-1] / SIZE))[:, :, None]
    at = torch.arange(logits.shape[-1]) + 0.5
    across = (at >= corner[:, 0]) & (at < corner[:, 2])
    down = (at >= corner[:, 1]) & (at < corner[:, 3])
    inside = down[:, :, None] & across[:, None]
    each = bce(logits, mask, reduction="none") * inside
    return each.sum((1, 2)) / inside.sum((1, 2)).clamp(min=1)
