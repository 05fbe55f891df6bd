"""Painted fields with discs, bars and triangles from seeds, and how a map of classes is scored."""

from __future__ import annotations

import numpy as np
from numpy.random import RandomState

METRIC = "mean IoU, %"
SIZE = 64
CLASSES = ("ground", "disc", "bar", "triangle")
COLORS = np.array([[40, 44, 52], [230, 85, 60], [70, 150, 235], [245, 190, 60]], np.uint8)
MAX_SHAPES = 5


def sample(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A picture uint8 (1, 3, SIZE, SIZE), RGB, and the class of each pixel (SIZE, SIZE)."""
    random = RandomState(seed)
    y, x = np.mgrid[:SIZE, :SIZE].astype(np.float32)
    image = ground(x, y, random)
    classes = np.zeros((SIZE, SIZE), np.int64)
    for _ in range(random.randint(1, MAX_SHAPES + 1)):
        kind = random.randint(1, len(CLASSES))
        inside = shape(kind, x, y, random)
        color = random.uniform(0, 255, 3) + random.uniform(-1, 1) * (x - y)[..., None]
        image[inside] = color[inside]
        classes[inside] = kind
    image += random.randn(SIZE, SIZE, 3) * random.uniform(2, 12)
    return np.uint8(np.clip(image, 0, 255)).transpose(2, 0, 1)[None], classes


def ground(x: np.ndarray, y: np.ndarray, random: RandomState) -> np.ndarray:
    waves = sum(
        np.sin((x * random.uniform(-1, 1) + y * random.uniform(-1, 1)) / random.uniform(2, 12))
        for _ in range(3)
    )
    return random.uniform(0, 255, 3) + waves[..., None] * random.uniform(2, 15, 3)


def shape(kind: int, x: np.ndarray, y: np.ndarray, random: RandomState) -> np.ndarray:
    """The pixels of a shape of that kind, turned at random."""
    turn, radius = random.uniform(0, 2 * np.pi), random.uniform(6, 17)
    x, y = x - random.uniform(8, SIZE - 8), y - random.uniform(8, SIZE - 8)
    u, v = x * np.cos(turn) + y * np.sin(turn), y * np.cos(turn) - x * np.sin(turn)
    if CLASSES[kind] == "disc":
        return u**2 + v**2 <= radius**2
    if CLASSES[kind] == "bar":
        return (np.abs(u) <= 1.4 * radius) & (np.abs(v) <= 0.35 * radius)
    edges = [u * np.cos(a) + v * np.sin(a) for a in 2 * np.pi / 3 * np.arange(3)]
    return np.max(edges, axis=0) <= 0.6 * radius


def score(output: np.ndarray, classes: np.ndarray) -> float:
    """Percent, over the classes that the picture or the output has."""
    predicted = output[0].argmax(0)
    pairs = [(predicted == k, classes == k) for k in range(len(CLASSES))]
    shares = [(a & b).sum() / (a | b).sum() for a, b in pairs if (a | b).any()]
    return 100.0 * float(np.mean(shares))


def picture(inputs: np.ndarray, output: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Picture, true classes and predicted classes side by side, uint8 (SIZE, 3 * SIZE, 3)."""
    parts = [inputs[0].transpose(1, 2, 0), COLORS[classes], COLORS[output[0].argmax(0)]]
    return np.concatenate(parts, axis=1).astype(np.uint8)


def caption(output: np.ndarray, classes: np.ndarray) -> str:
    return f"IoU {score(output, classes):.0f} %"
