"""Handwritten digits, the held-out ones of projects/digits, and how an answer is scored."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np

METRIC = "top-1, %"
DIGITS = Path(__file__).parents[2] / "projects" / "digits"
CLASSES = 10


@cache
def digits() -> tuple[np.ndarray, np.ndarray]:
    """600 images uint8 (600, 1, 8, 8), pixels of 0..16, and their labels."""
    return np.load(DIGITS / "test_images.npy"), np.load(DIGITS / "test_labels.npy")


def sample(number: int) -> tuple[np.ndarray, int]:
    """Image uint8 (1, 1, 8, 8) and label."""
    images, labels = digits()
    return images[number : number + 1], int(labels[number])


def score(output: np.ndarray, label: int) -> float:
    return 100.0 * (int(np.argmax(output)) == label)


def picture(inputs: np.ndarray, output: np.ndarray, label: int) -> np.ndarray:
    """The digit, uint8 (64, 64, 3)."""
    gray = (inputs[0, 0] * 15.9).astype(np.uint8).repeat(8, 0).repeat(8, 1)
    return np.stack([gray, gray, gray], -1)


def caption(output: np.ndarray, label: int) -> str:
    return f"{int(np.argmax(output))} ({label})"
