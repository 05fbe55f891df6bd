"""Trains the keyword spotter: python examples/keyword-spotting/train.py (see ../training.py)."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import task
from torch import nn

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent))
import training  # noqa: E402

POOL, STEPS, BATCH = 6000, 1200, 64


def separable(inputs: int, outputs: int, stride: int = 1) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, inputs, 3, stride, 1, groups=inputs, bias=False),
        nn.BatchNorm2d(inputs),
        nn.ReLU(),
        nn.Conv2d(inputs, outputs, 1, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(),
    )


def network() -> nn.Module:
    """A DS-CNN (arXiv:1711.07128) of 11,000 weights."""
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, 2, 1, bias=False),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        separable(32, 48),
        separable(48, 64, 2),
        separable(64, 64),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(64, len(task.WORDS)),
    )


def main() -> None:
    training.begin()
    inputs, words = zip(
        *map(task.sample, range(training.TRAIN, training.TRAIN + POOL)), strict=True
    )
    data = training.batches((np.concatenate(inputs), np.array(words)), BATCH, STEPS)
    model = training.fit(network(), data, STEPS, nn.CrossEntropyLoss())
    training.export(model, inputs[0], HERE / "model.onnx", ("features", "scores"))
    training.write_samples(HERE / "samples", (task.sample(k)[0] for k in training.CALIBRATION))


if __name__ == "__main__":
    main()
