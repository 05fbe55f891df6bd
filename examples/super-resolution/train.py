"""Trains the model: python examples/super-resolution/train.py (see ../training.py)."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import task
from torch import Tensor, nn

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent))
import training  # noqa: E402

POOL, STEPS, BATCH = 3000, 1500, 16


class Network(nn.Module):
    """ESPCN (arXiv:1609.05158) with a residual to the enlarged picture: pixel / 255 both ways."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 32, 5, 1, 2), nn.ReLU(), nn.Conv2d(32, 24, 3, 1, 1), nn.ReLU()
        )
        self.details = nn.Conv2d(24, task.FACTOR**2, 3, 1, 1)
        self.shuffle = nn.PixelShuffle(task.FACTOR)

    def forward(self, image: Tensor) -> Tensor:
        return self.shuffle(self.details(self.features(image)) + image)


def main() -> None:
    training.begin()
    rows = map(task.sample, range(training.TRAIN, training.TRAIN + POOL))
    small, fine = zip(*rows, strict=True)
    inputs = np.concatenate(small).astype(np.float32) / 255
    truths = np.stack(fine).astype(np.float32)[:, None] / 255
    data = training.batches((inputs, truths), BATCH, STEPS)
    model = training.fit(Network(), data, STEPS, nn.MSELoss())
    training.export(model, inputs[:1], HERE / "model.onnx", ("image", "restored"))
    training.write_samples(HERE / "samples", (task.sample(k)[0] for k in training.CALIBRATION))


if __name__ == "__main__":
    main()
