"""Drawings from seeds at half the resolution, and how well the whole one is restored."""

from __future__ import annotations

import numpy as np
from numpy.random import RandomState

METRIC = "PSNR, dB"
SIZE, FACTOR = 32, 2  # pixels of the input, and the magnification
FINE = SIZE * FACTOR
OVERSAMPLING = 4
MAX_STROKES = 9


def sample(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The small picture uint8 (1, 1, SIZE, SIZE), and the whole one (FINE, FINE), 0..255."""
    fine = drawing(RandomState(seed))
    small = fine.reshape(SIZE, FACTOR, SIZE, FACTOR).mean((1, 3))
    return np.uint8(np.rint(small))[None, None], np.uint8(np.rint(fine))


def drawing(random: RandomState) -> np.ndarray:
    """Strokes and discs with smooth edges on a shaded ground."""
    count = FINE * OVERSAMPLING
    y, x = np.mgrid[:count, :count].astype(np.float32) / OVERSAMPLING
    image = random.uniform(40, 215) + (x - y) * random.uniform(-0.8, 0.8)
    for _ in range(random.randint(3, MAX_STROKES + 1)):
        turn = random.uniform(0, np.pi)
        u, v = x - random.uniform(0, FINE), y - random.uniform(0, FINE)
        u, v = u * np.cos(turn) + v * np.sin(turn), v * np.cos(turn) - u * np.sin(turn)
        if random.rand() < 0.3:
            inside = u**2 + v**2 <= random.uniform(3, 12) ** 2
        else:
            inside = (np.abs(u) <= random.uniform(4, 40)) & (np.abs(v) <= random.uniform(0.6, 3.5))
        image[inside] = random.uniform(0, 255)
    fine = image.reshape(FINE, OVERSAMPLING, FINE, OVERSAMPLING).mean((1, 3))
    return np.clip(fine, 0, 255)


def score(output: np.ndarray, fine: np.ndarray) -> float:
    """Peak signal to noise ratio of the output, whose values are pixel / 255."""
    error = np.clip(output[0, 0] * 255.0, 0, 255) - fine
    return float(10 * np.log10(255**2 / np.mean(error**2)))


def picture(inputs: np.ndarray, output: np.ndarray, fine: np.ndarray) -> np.ndarray:
    """Input, output and truth side by side, uint8 (FINE, 3 * FINE, 3)."""
    large = inputs[0, 0].repeat(FACTOR, 0).repeat(FACTOR, 1)
    restored = np.clip(output[0, 0] * 255.0, 0, 255)
    gray = np.concatenate([large, restored, fine], axis=1).astype(np.uint8)
    return np.stack([gray, gray, gray], -1)


def caption(output: np.ndarray, fine: np.ndarray) -> str:
    return f"{score(output, fine):.1f} dB"
