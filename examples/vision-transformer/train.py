"""Trains the ViT: python examples/vision-transformer/train.py (see ../training.py).

It learns from the digits of scikit-learn that projects/digits/split.py has for training.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import load_digits
from task import CLASSES, DIGITS
from torch import Tensor, nn

HERE = Path(__file__).parent
sys.path += [str(HERE.parent), str(DIGITS)]
import training  # noqa: E402
from split import split  # noqa: E402

WIDTH, HEADS, DEPTH, PATCH, TOKENS = 32, 4, 3, 2, 16
STEPS, BATCH = 2500, 64
WHITE = 16.0


class Block(nn.Module):
    """Attention and a multilayer perceptron, each behind a normalization (arXiv:2010.11929)."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.wide, self.narrow = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        parts = self.qkv(self.norm1(x)).reshape(-1, TOKENS, 3, HEADS, WIDTH // HEADS)
        q, k, v = parts.permute(2, 0, 3, 1, 4).unbind()
        weights = (q @ k.transpose(-2, -1) * (WIDTH // HEADS) ** -0.5).softmax(-1)
        x = x + self.out((weights @ v).transpose(1, 2).reshape(-1, TOKENS, WIDTH))
        return x + self.narrow(nn.functional.gelu(self.wide(self.norm2(x))))


class Network(nn.Module):
    """(N, 1, 8, 8) of pixel / 16 → (N, 10) logits."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(1, WIDTH, PATCH, PATCH)
        self.position = nn.Parameter(0.02 * torch.randn(1, TOKENS, WIDTH))
        self.blocks = nn.Sequential(*(Block() for _ in range(DEPTH)))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, CLASSES)

    def forward(self, image: Tensor) -> Tensor:
        x = self.patches(image).flatten(2).transpose(1, 2) + self.position
        return self.head(self.norm(self.blocks(x)).mean(1))


def main() -> None:
    training.begin()
    digits = load_digits()
    rows = split(digits.target)
    images = digits.images[:, None].astype(np.float32)
    pixels, labels = images[rows.train] / WHITE, digits.target[rows.train]
    shifts = np.concatenate([np.roll(pixels, move, axis) for axis in (2, 3) for move in (-1, 0, 1)])
    data = training.batches((shifts, np.tile(labels, 6)), BATCH, STEPS)
    model = training.fit(Network(), data, STEPS, nn.CrossEntropyLoss(label_smoothing=0.1))
    training.export(model, pixels[:1], HERE / "model.onnx", ("image", "logits"))
    chosen = rows.calibration[:32]
    training.write_samples(HERE / "samples", (np.uint8(images[k : k + 1]) for k in chosen))


if __name__ == "__main__":
    main()
