"""Trains the segmenter: python examples/segmentation/train.py (see ../training.py)."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import task
import torch
from torch import Tensor, nn

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent))
import training  # noqa: E402

POOL, STEPS, BATCH = 4000, 1000, 16


def block(inputs: int, outputs: int, stride: int = 1) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()
    )


class Network(nn.Module):
    """A U-Net (arXiv:1505.04597) of two levels: pixels / 255 → scores of each class."""

    def __init__(self) -> None:
        super().__init__()
        self.first = block(3, 12)
        self.down1 = nn.Sequential(block(12, 24, 2), block(24, 24))
        self.down2 = nn.Sequential(block(24, 40, 2), block(40, 40), block(40, 40))
        self.up1 = nn.ConvTranspose2d(40, 24, 2, 2)
        self.merge1 = block(48, 24)
        self.up2 = nn.ConvTranspose2d(24, 12, 2, 2)
        self.merge2 = block(24, 12)
        self.head = nn.Conv2d(12, len(task.CLASSES), 1)

    def forward(self, image: Tensor) -> Tensor:
        first = self.first(image)
        half = self.down1(first)
        quarter = self.down2(half)
        half = self.merge1(torch.cat([self.up1(quarter), half], 1))
        return self.head(self.merge2(torch.cat([self.up2(half), first], 1)))


def main() -> None:
    training.begin()
    rows = map(task.sample, range(training.TRAIN, training.TRAIN + POOL))
    images, classes = zip(*rows, strict=True)
    pixels = np.concatenate(images).astype(np.float32) / 255
    data = training.batches((pixels, np.stack(classes)), BATCH, STEPS)
    model = training.fit(Network(), data, STEPS, nn.CrossEntropyLoss())
    training.export(model, pixels[:1], HERE / "model.onnx", ("image", "classes"))
    training.write_samples(HERE / "samples", (task.sample(k)[0] for k in training.CALIBRATION))


if __name__ == "__main__":
    main()
