"""Trains a small DETR: python benchmarks/detr/train.py (see ../../examples/training.py).

A convolutional stem, an encoder over its 64 positions, and a decoder in which eight queries attend
to them. Each query predicts a class or none, and a box (arXiv:2005.12872). It learns from scenes of
the training digits. Needs torch==2.13.0, onnx, scikit-learn and SciPy.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import torch
from digit_scenes import CLASSES, SIDE, TRAIN, WHITE, scenes
from scipy.optimize import linear_sum_assignment
from torch import Tensor, nn

HERE = Path(__file__).parent
sys.path.append(str(HERE.parents[1] / "examples"))
import training  # noqa: E402

WIDTH, HEADS, DEPTH, QUERIES, POSITIONS = 64, 4, 2, 8, 64
SCENES, STEPS, BATCH = 12_000, 4_000, 48
BOX_WEIGHT, NONE_WEIGHT = 5.0, 0.2


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))

    def forward(self, x: Tensor, memory: Tensor) -> Tensor:
        def heads(y: Tensor, length: int) -> Tensor:
            return y.reshape(-1, length, HEADS, WIDTH // HEADS).transpose(1, 2)

        n, m = x.shape[1], memory.shape[1]
        q, k, v = heads(self.q(x), n), heads(self.k(memory), m), heads(self.v(memory), m)
        weights = (q @ k.transpose(-2, -1) * (WIDTH // HEADS) ** -0.5).softmax(-1)
        return self.out((weights @ v).transpose(1, 2).reshape(-1, n, WIDTH))


class Block(nn.Module):
    """Attention within x, in a decoder also to the memory, then a multilayer perceptron."""

    def __init__(self, is_decoder: bool) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention = Attention()
        self.cross_norm = nn.LayerNorm(WIDTH) if is_decoder else None
        self.cross_attention = Attention() if is_decoder else None
        self.wide, self.narrow = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x: Tensor, memory: Tensor) -> Tensor:
        y = self.norm1(x)
        x = x + self.attention(y, y)
        if self.cross_attention is not None and self.cross_norm is not None:
            x = x + self.cross_attention(self.cross_norm(x), memory)
        return x + self.narrow(nn.functional.relu(self.wide(self.norm2(x))))


class Network(nn.Module):
    """(N, 1, 32, 32) of pixel / 16 → (N, 8, 11) logits, (N, 8, 4) boxes; in training those of
    every decoder block."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            *(nn.Conv2d(1, 32, 3, 2, 1), nn.ReLU()),
            *(nn.Conv2d(32, WIDTH, 3, 2, 1), nn.ReLU(), nn.Conv2d(WIDTH, WIDTH, 3, 1, 1)),
        )
        self.position = nn.Parameter(0.02 * torch.randn(1, POSITIONS, WIDTH))
        self.queries = nn.Parameter(torch.randn(1, QUERIES, WIDTH))
        self.encoder = nn.ModuleList(Block(False) for _ in range(DEPTH))
        self.decoder = nn.ModuleList(Block(True) for _ in range(DEPTH))
        self.memory_norm, self.output_norm = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.classes = nn.Linear(WIDTH, CLASSES + 1)
        self.boxes = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 4))

    def forward(self, image: Tensor) -> tuple[Tensor, ...]:
        x = self.stem(image).flatten(2).transpose(1, 2) + self.position
        for block in self.encoder:
            x = block(x, x)
        memory = self.memory_norm(x)
        y, predictions = self.queries.expand(image.shape[0], -1, -1), []
        for block in self.decoder:
            y = block(y, memory)
            normal = self.output_norm(y)
            predictions += [self.classes(normal), self.boxes(normal).sigmoid()]
        return tuple(predictions if self.training else predictions[-2:])


def loss(predictions: tuple[Tensor, ...], labels: Tensor, boxes: Tensor) -> Tensor:
    """The sum over the decoder blocks; each digit is matched to the query that fits it best."""
    pairs = zip(predictions[::2], predictions[1::2], strict=True)
    return torch.stack([_block_loss(*pair, labels, boxes) for pair in pairs]).sum()


def _block_loss(logits: Tensor, predicted: Tensor, labels: Tensor, boxes: Tensor) -> Tensor:
    sample, query, digit = _matches(logits.detach(), predicted.detach(), labels, boxes)
    targets = torch.full(logits.shape[:2], CLASSES)
    targets[sample, query] = labels[sample, digit]
    weight = torch.ones(CLASSES + 1)
    weight[CLASSES] = NONE_WEIGHT
    class_loss = nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), weight)
    box_loss = (predicted[sample, query] - boxes[sample, digit]).abs().sum(1).mean()
    return class_loss + BOX_WEIGHT * box_loss


def _matches(
    logits: Tensor, predicted: Tensor, labels: Tensor, boxes: Tensor
) -> tuple[Tensor, ...]:
    """(sample, query, digit) of the assignment with the least cost."""
    samples = torch.arange(len(labels))[:, None, None]
    queries = torch.arange(QUERIES)[None, :, None]
    likelihood = logits.softmax(-1)[samples, queries, labels[:, None]]
    costs = (BOX_WEIGHT * torch.cdist(predicted, boxes, p=1) - likelihood).numpy()
    matches: list[tuple[int, int, int]] = []
    for sample, cost in enumerate(costs):
        digits = np.flatnonzero(labels[sample].numpy() < CLASSES)
        rows, columns = linear_sum_assignment(cost[:, digits])
        matches += [
            (sample, int(row), int(digits[column]))
            for row, column in zip(rows, columns, strict=True)
        ]
    return torch.tensor(matches).unbind(1)


def main() -> None:
    training.begin()
    pixels, labels, boxes = (np.stack(part) for part in zip(*scenes(TRAIN, SCENES), strict=True))
    data = training.batches((pixels / np.float32(WHITE), labels, boxes), BATCH, STEPS)
    model = training.fit(Network(), data, STEPS, loss)
    example = np.zeros((1, 1, SIDE, SIDE), np.float32)
    training.export(model, example, HERE / "model.onnx", ("image", "logits", "boxes"))


if __name__ == "__main__":
    main()
