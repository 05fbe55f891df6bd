"""Scenes of one to three handwritten digits of three sizes, for a detector that predicts sets.

The digits are scikit-learn's, in the parts of projects/digits/split.py. A scene follows from its
digits and its seed alone. The parts have seeds of their own, so that no layout is shared.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits  # type: ignore[import-untyped]

sys.path.append(str(Path(__file__).parents[2] / "projects" / "digits"))
from split import split

SIDE, CLASSES, MAX_DIGITS = 32, 10, 3
DIGIT, WHITE = 8, 16.0  # the side of a digit in the data set, its brightest pixel
SIZES = (8, 12, 16)
TEST, CALIBRATION, TRAIN = 0, 10_000, 100_000  # the first seed of each part


class Scene(NamedTuple):
    """`pixels` uint8 (1, SIDE, SIDE) of 0..16; `labels` (MAX_DIGITS,), CLASSES where there is no
    digit; `boxes` float32 (MAX_DIGITS, 4): center x, y, width, height, each over SIDE."""

    pixels: NDArray[np.uint8]
    labels: NDArray[np.int64]
    boxes: NDArray[np.float32]


def scene(images: NDArray[np.uint8], targets: NDArray[np.int64], seed: int) -> Scene:
    """A scene of some of the digits `images` (N, 8, 8), whose classes are `targets` (N,)."""
    random = np.random.RandomState(seed)  # frozen by NumPy; default_rng may change
    pixels = np.zeros((1, SIDE, SIDE), np.uint8)
    labels = np.full(MAX_DIGITS, CLASSES, np.int64)
    boxes = np.zeros((MAX_DIGITS, 4), np.float32)
    covered = np.zeros((SIDE, SIDE), bool)
    for slot in range(random.randint(1, MAX_DIGITS + 1)):
        size = SIZES[random.randint(len(SIZES))]
        y, x = random.randint(0, SIDE - size + 1, 2)
        if covered[y : y + size, x : x + size].any():
            continue
        covered[y : y + size, x : x + size] = True
        row = random.randint(len(images))
        nearest = np.arange(size) * DIGIT // size
        pixels[0, y : y + size, x : x + size] = images[row][np.ix_(nearest, nearest)]
        labels[slot] = targets[row]
        boxes[slot] = np.array([x + size / 2, y + size / 2, size, size]) / SIDE
    return Scene(pixels, labels, boxes)


def scenes(first_seed: int, count: int) -> Sequence[Scene]:
    """`count` scenes of the part that `first_seed` names: TEST, CALIBRATION or TRAIN."""
    digits = load_digits()
    parts = split(digits.target)
    part = {TEST: parts.test, CALIBRATION: parts.calibration, TRAIN: parts.train}[first_seed]
    images = digits.images[part].astype(np.uint8)
    return [scene(images, digits.target[part], first_seed + number) for number in range(count)]
