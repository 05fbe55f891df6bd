"""A face in many places, from seeds, and how a detection is scored.

A face of known place (NASA's portrait of Eileen Collins) is scaled, mirrored, relit and laid on
another picture. It is one person: the figures say what int8 costs, and not how well the model finds
faces.

BlazeFace (arXiv:1907.05047) has two anchors in each cell of a grid of 16 x 16 and six in each of
8 x 8. A regressor is (x, y, width, height, …) in pixels of its input, from the anchor's center.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import numpy as np
from numpy.random import RandomState
from PIL import Image

METRIC = "mean IoU, %"
DATA = Path(__file__).with_name("data")
SIZE = 128  # pixels of the input
GRIDS = ((16, 2), (8, 6))  # cells both ways, anchors in each
GROUNDS = ("coffee.png", "gravel.png", "rocket.jpg")
HEAD = (120, 0, 328, 300)  # the part of the portrait that is laid on: left, top, right, bottom
FACE = np.array([173, 77, 270, 174])  # the face in the portrait, brows to chin, as a square

Box = np.ndarray  # left, top, right, bottom in pixels


@cache
def image(name: str) -> Image.Image:
    return Image.open(DATA / name).convert("RGB")


def sample(seed: int) -> tuple[np.ndarray, Box]:
    """A picture uint8 (1, SIZE, SIZE, 3), RGB, and the box of its face."""
    random = RandomState(seed)
    canvas = ground(random)
    scale = random.uniform(0.25, 0.42)
    head = image("astronaut.png").crop(HEAD)
    width, height = round(head.width * scale), round(head.height * scale)
    head = head.resize((width, height), Image.Resampling.BILINEAR)
    box = (FACE - np.tile(HEAD[:2], 2)) * scale
    if random.rand() < 0.5:
        head = head.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        box = np.array([width - box[2], box[1], width - box[0], box[3]])
    left, top = random.randint(0, SIZE - width + 1), random.randint(0, max(SIZE - height, 1))
    canvas.paste(head, (left, top))
    pixels = np.asarray(canvas, np.float64) * random.uniform(0.5, 1.2)
    pixels += random.randn(SIZE, SIZE, 3) * random.uniform(0, 10)
    return np.uint8(np.clip(pixels, 0, 255))[None], box + np.tile([left, top], 2)


def ground(random: RandomState) -> Image.Image:
    picture = image(GROUNDS[random.randint(len(GROUNDS))])
    side = random.randint(SIZE, min(picture.size))
    left, top = (random.randint(0, length - side + 1) for length in picture.size)
    part = picture.crop((left, top, left + side, top + side))
    return part.resize((SIZE, SIZE), Image.Resampling.BILINEAR)


@cache
def anchors() -> np.ndarray:
    """Centers in pixels, (896, 2): x, y."""
    centers = []
    for cells, count in GRIDS:
        y, x = np.mgrid[:cells, :cells]
        center = (np.stack([x, y], -1).reshape(-1, 2) + 0.5) * SIZE / cells
        centers.append(center.repeat(count, 0))
    return np.concatenate(centers)


def detection(outputs: Mapping[str, np.ndarray]) -> Box:
    """The box of the highest score."""
    best = int(outputs["classificators"].ravel().argmax())
    x, y, width, height = outputs["regressors"].reshape(-1, 16)[best, :4]
    center = anchors()[best] + [x, y]
    half = np.array([width, height]) / 2
    return np.concatenate([center - half, center + half])


def overlap(a: Box, b: Box) -> float:
    """Intersection over union."""
    sides = np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2])
    shared = float(np.prod(np.maximum(sides, 0)))
    return shared / (float(np.prod(a[2:] - a[:2]) + np.prod(b[2:] - b[:2])) - shared)


def score(outputs: Mapping[str, np.ndarray], face: Box) -> float:
    return 100.0 * overlap(detection(outputs), face)


def picture(inputs: np.ndarray, outputs: Mapping[str, np.ndarray], face: Box) -> np.ndarray:
    """The picture with the detection in green, uint8 (SIZE, SIZE, 3)."""
    pixels = inputs[0].copy()
    left, top, right, bottom = np.clip(np.rint(detection(outputs)), 0, SIZE - 1).astype(int)
    for rows, columns in (
        ([top, bottom], slice(left, right + 1)),
        (slice(top, bottom + 1), [left, right]),
    ):
        pixels[rows, columns] = (80, 255, 120)
    return pixels


def caption(outputs: Mapping[str, np.ndarray], face: Box) -> str:
    return f"IoU {overlap(detection(outputs), face):.2f}"
