"""Which material? Patches of eight photographs from seeds, and how an answer is scored.

The photographs are those of scikit-image (CC0 or public domain), made smaller. The model learns
from the upper 60 % of each; the test sees the lower rest. A patch is cut at a random scale, turned,
mirrored and relit, each color by a gain of its own, so that the texture decides.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
from numpy.random import RandomState
from PIL import Image

METRIC = "top-1, %"
PICTURES = Path(__file__).with_name("pictures")
CLASSES = ("brick", "coins", "grass", "gravel", "moon", "print", "stars", "tissue")
SIZE = 48  # pixels of the input
SIDES = (36, 72)  # pixels of a patch in its photograph
TRAIN_SHARE = 0.6
TEST = 10_000  # the first seed that no longer belongs to the test


@cache
def photograph(name: str) -> Image.Image:
    return Image.open(PICTURES / f"{name}.jpg").convert("RGB")


def sample(seed: int) -> tuple[np.ndarray, int]:
    """A patch uint8 (1, 3, SIZE, SIZE), RGB, and the index of its class."""
    random = RandomState(seed)
    label = int(random.randint(len(CLASSES)))
    pixels = patch(photograph(CLASSES[label]), seed < TEST, random)
    pixels = np.rot90(pixels, random.randint(4))[:: random.choice([-1, 1])]
    light = random.uniform(0.5, 1.2) * random.uniform(0.75, 1.25, 3)
    pixels = pixels * light + random.randn(SIZE, SIZE, 3) * random.uniform(0, 24)
    return np.uint8(np.clip(pixels, 0, 255)).transpose(2, 0, 1)[None], label


def patch(picture: Image.Image, is_test: bool, random: RandomState) -> np.ndarray:
    """A square of random size from the picture's lower or upper part, (SIZE, SIZE, 3)."""
    width, height = picture.size
    border = round(TRAIN_SHARE * height)
    first, last = (border, height) if is_test else (0, border)
    side = random.randint(SIDES[0], SIDES[1] + 1)
    left, top = random.randint(0, width - side + 1), random.randint(first, last - side + 1)
    part = picture.crop((left, top, left + side, top + side))
    return np.asarray(part.resize((SIZE, SIZE), Image.Resampling.BILINEAR), np.float64)


def score(output: np.ndarray, label: int) -> float:
    return 100.0 * (int(np.argmax(output)) == label)


def picture(inputs: np.ndarray, output: np.ndarray, label: int) -> np.ndarray:
    """The patch, uint8 (SIZE, SIZE, 3)."""
    return inputs[0].transpose(1, 2, 0)


def caption(output: np.ndarray, label: int) -> str:
    return f"{CLASSES[int(np.argmax(output))]} ({CLASSES[label]})"
