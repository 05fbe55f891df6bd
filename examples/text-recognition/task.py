"""Strips of handwritten digits: how they are written, and how a reading is scored.

The handwriting is that of the held-out digits of projects/digits, each digit enlarged twice, with
random spaces and noise.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
from numpy.random import RandomState

METRIC = "strips read without an error, %"
DIGITS = Path(__file__).parents[2] / "projects" / "digits"
HEIGHT, WIDTH = 20, 96
BLANK = 10  # the class of no digit
WHITE = 16.0


@cache
def handwriting() -> tuple[np.ndarray, np.ndarray]:
    """Images (600, 8, 8) of 0..16, and labels."""
    return np.load(DIGITS / "test_images.npy")[:, 0], np.load(DIGITS / "test_labels.npy")


def sample(seed: int) -> tuple[np.ndarray, tuple[int, ...]]:
    """A strip uint8 (1, 1, HEIGHT, WIDTH), and its three to five digits."""
    return strip(RandomState(seed), *handwriting())


def strip(
    random: RandomState, images: np.ndarray, labels: np.ndarray
) -> tuple[np.ndarray, tuple[int, ...]]:
    count = random.randint(3, 6)
    rows = random.randint(0, len(images), count)
    canvas = np.zeros((HEIGHT, WIDTH))
    free = WIDTH - 16 * count
    left = 0
    for position, row in enumerate(rows):
        left += random.randint(0, free // (count - position) + 1)
        free = WIDTH - left - 16 * (count - position)
        top = random.randint(0, HEIGHT - 16 + 1)
        canvas[top : top + 16, left : left + 16] = enlarged(images[row]) * random.uniform(0.7, 1)
        left += 16
    canvas = canvas * 255 / WHITE + random.randn(HEIGHT, WIDTH) * random.uniform(0, 12)
    pixels = np.uint8(np.clip(canvas, 0, 255))[None, None]
    return pixels, tuple(int(labels[row]) for row in rows)


def enlarged(image: np.ndarray) -> np.ndarray:
    """Twice as large, with neighbouring pixels averaged: (8, 8) → (16, 16)."""
    large = image.astype(np.float64).repeat(2, 0).repeat(2, 1)
    padded = np.pad(large, 1, mode="edge")
    rows = (padded[:-2] + 2 * padded[1:-1] + padded[2:]) / 4
    return (rows[:, :-2] + 2 * rows[:, 1:-1] + rows[:, 2:]) / 4


def reading(output: np.ndarray) -> tuple[int, ...]:
    """The digits of scores (1, BLANK + 1, 1, steps): the best of each step, without repeats."""
    best = output[0, :, 0].argmax(0)
    starts = np.flatnonzero(np.diff(best, prepend=BLANK))
    return tuple(int(best[k]) for k in starts if best[k] != BLANK)


def score(output: np.ndarray, digits: tuple[int, ...]) -> float:
    return 100.0 * (reading(output) == digits)


def picture(inputs: np.ndarray, output: np.ndarray, digits: tuple[int, ...]) -> np.ndarray:
    """The strip, uint8 (2 * HEIGHT, 2 * WIDTH, 3)."""
    gray = inputs[0, 0].repeat(2, 0).repeat(2, 1)
    return np.stack([gray, gray, gray], -1)


def caption(output: np.ndarray, digits: tuple[int, ...]) -> str:
    read, written = ("".join(map(str, word)) for word in (reading(output), digits))
    return read if read == written else f"{read} ({written})"
