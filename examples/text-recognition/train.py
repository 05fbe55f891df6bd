"""Trains the recognizer: python examples/text-recognition/train.py (see ../training.py).

It learns from strips of the digits of scikit-learn that projects/digits/split.py has for training.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import torch
from numpy.random import RandomState
from sklearn.datasets import load_digits
from task import BLANK, DIGITS, strip
from torch import Tensor, nn

HERE = Path(__file__).parent
sys.path += [str(HERE.parent), str(DIGITS)]
import training  # noqa: E402
from split import split  # noqa: E402

POOL, STEPS, BATCH = 5000, 1500, 32
LONGEST = 5  # digits


def block(inputs: int, outputs: int, stride: tuple[int, int]) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU6()
    )


def network() -> nn.Module:
    """A CRNN (arXiv:1507.05717) without its recurrence: a score of each class for four columns."""
    return nn.Sequential(
        block(1, 16, (2, 2)),
        block(16, 32, (2, 1)),
        block(32, 48, (1, 2)),
        nn.Conv2d(48, 64, (5, 1), bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU6(),
        nn.Conv2d(64, 64, (1, 5), 1, (0, 2), bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU6(),
        nn.Conv2d(64, BLANK + 1, 1),
    )


def loss(scores: Tensor, digits: Tensor, lengths: Tensor) -> Tensor:
    """Connectionist temporal classification of scores (N, BLANK + 1, 1, steps)."""
    steps = scores[:, :, 0].permute(2, 0, 1).log_softmax(-1)
    times = torch.full((len(digits),), len(steps))
    return nn.functional.ctc_loss(steps, digits, times, lengths, blank=BLANK)


def main() -> None:
    training.begin()
    data = load_digits()
    rows = split(data.target)
    writing = data.images[rows.train], data.target[rows.train]
    strips = [strip(RandomState(training.TRAIN + k), *writing) for k in range(POOL)]
    pixels = np.concatenate([image for image, _ in strips]).astype(np.float32) / 255
    padded = np.array([[*word, *[0] * (LONGEST - len(word))] for _, word in strips])
    lengths = np.array([len(word) for _, word in strips])
    batches = training.batches((pixels, padded, lengths), BATCH, STEPS)
    model = training.fit(network(), batches, STEPS, loss)
    training.export(model, pixels[:1], HERE / "model.onnx", ("strip", "scores"))
    own = data.images[rows.calibration], data.target[rows.calibration]
    calibration = (strip(RandomState(seed), *own)[0] for seed in training.CALIBRATION)
    training.write_samples(HERE / "samples", calibration)


if __name__ == "__main__":
    main()
