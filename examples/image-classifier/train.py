"""Trains the classifier: python examples/image-classifier/train.py (see ../training.py)."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import task
from torch import Tensor, nn

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent))
import training  # noqa: E402

POOL, STEPS, BATCH = 4000, 900, 48
WHITE = 255.0
EXPANSION = 4
BLOCKS = ((16, 1), (24, 2), (24, 1), (32, 2), (32, 1))  # channels, stride


def convolution(inputs: int, outputs: int, size: int, stride: int = 1, groups: int = 1) -> list:
    """A convolution with its normalization."""
    padding = size // 2
    conv = nn.Conv2d(inputs, outputs, size, stride, padding, groups=groups, bias=False)
    return [conv, nn.BatchNorm2d(outputs)]


class Block(nn.Module):
    """The inverted residual of MobileNetV2 (arXiv:1801.04381)."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        wide = EXPANSION * inputs
        self.layers = nn.Sequential(
            *(*convolution(inputs, wide, 1), nn.ReLU6()),
            *(*convolution(wide, wide, 3, stride, wide), nn.ReLU6()),
            *convolution(wide, outputs, 1),
        )
        self.is_residual = inputs == outputs and stride == 1

    def forward(self, x: Tensor) -> Tensor:
        y = self.layers(x)
        return x + y if self.is_residual else y


def network() -> nn.Module:
    """A MobileNetV2 of 33,000 weights: (N, 3, SIZE, SIZE) of pixel / 255 → (N, classes) logits."""
    channels = 16
    layers = [*convolution(3, channels, 3, 2), nn.ReLU6()]
    for outputs, stride in BLOCKS:
        layers.append(Block(channels, outputs, stride))
        channels = outputs
    layers += [*convolution(channels, 96, 1), nn.ReLU6()]
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(96, len(task.CLASSES))]
    return nn.Sequential(*layers)


def main() -> None:
    training.begin()
    seeds = range(training.TRAIN, training.TRAIN + POOL)
    inputs, labels = zip(*map(task.sample, seeds), strict=True)
    pixels = np.concatenate(inputs).astype(np.float32) / WHITE
    data = training.batches((pixels, np.array(labels)), BATCH, STEPS)
    loss = nn.CrossEntropyLoss(label_smoothing=0.1)
    model = training.fit(network(), data, STEPS, loss)
    training.export(model, pixels[:1], HERE / "model.onnx", ("image", "logits"))
    training.write_samples(HERE / "samples", (task.sample(k)[0] for k in training.CALIBRATION))


if __name__ == "__main__":
    main()
