"""Scenes of coloured shapes: what the detector learns from, is calibrated on and is tested with.

Scene k is made from the seed k alone: NumPy's RandomState is frozen, so that every machine draws
the same shapes. TEST, CALIBRATION and training (seeds from TRAIN on) never share a seed.

A shape is the set of points p with d(p) <= 0, where d is a signed distance in pixels; its coverage
of a pixel with centre p is clip(1/2 - d(p), 0, 1), which is what smooths the edge. With p turned
and moved into the shape's own frame, |p| its length and r the radius of its hull:

    circle     |p| - r
    square     max(|x|, |y|) - r/√2
    triangle   max over three directions u, 120° apart, of p·u - r/2
    star       p folded into the 36° between a tip and a notch, then the half-plane of the one edge
    cross      min of two bars: max(|x| - a, |y| - b) and the same with x and y exchanged

Shapes are painted one after the other; one that would hide more than MOST_HIDDEN of another is not
painted. Boxes and masks are of what is visible, within the canvas.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray

SIZE = 160  # pixels, both ways
TEST = range(300)
CALIBRATION = range(10_000, 10_032)
TRAIN = 100_000
MOST_SHAPES, MOST_HIDDEN = 6, 0.5
RADIUS = (7.0, 46.0)
CONTRAST = 70.0  # least distance, in RGB, of a shape's colour from the ground below it

Array = NDArray[np.float32]


@dataclass(frozen=True)
class Scene:
    """An image and its N >= 1 shapes, in the order they were painted."""

    image: NDArray[np.uint8]  # (SIZE, SIZE, 3), RGB
    boxes: Array  # (N, 4): left, top, right, bottom in pixels; the right and bottom edges exclusive
    labels: NDArray[np.int64]  # (N,), an index into CLASSES
    masks: NDArray[np.bool_]  # (N, SIZE, SIZE)


def circle(x: Array, y: Array, r: float) -> Array:
    return np.hypot(x, y) - r


def square(x: Array, y: Array, r: float) -> Array:
    return np.maximum(np.abs(x), np.abs(y)) - r / np.sqrt(2)


def triangle(x: Array, y: Array, r: float) -> Array:
    turns = 2 * np.pi / 3 * np.arange(3)
    return np.max([x * np.cos(turn) + y * np.sin(turn) for turn in turns], axis=0) - r / 2


def star(x: Array, y: Array, r: float) -> Array:
    """Five tips at radius r, five notches at 0.45 r."""
    sector = 2 * np.pi / 5
    angle = np.abs(np.mod(np.arctan2(y, x) + sector / 2, sector) - sector / 2)
    length = np.hypot(x, y)
    across, along = 0.45 * r * np.sin(sector / 2), r - 0.45 * r * np.cos(sector / 2)
    edge = np.hypot(across, along)
    return ((length * np.cos(angle) - r) * across + length * np.sin(angle) * along) / edge


def cross(x: Array, y: Array, r: float) -> Array:
    x, y, a, b = np.abs(x), np.abs(y), 0.95 * r, 0.31 * r
    return np.minimum(np.maximum(x - a, y - b), np.maximum(y - a, x - b))


SHAPES = (circle, square, triangle, star, cross)
CLASSES = tuple(shape.__name__ for shape in SHAPES)


def scene(seed: int) -> Scene:
    """The scene of this seed, the same everywhere."""
    random = RandomState(seed)
    canvas, masks, labels = background(random), np.zeros((0, SIZE, SIZE), bool), []
    wanted = random.randint(1, MOST_SHAPES + 1)
    for _ in range(4 * wanted):  # some find no place
        label, coverage = placed_shape(random)
        visible = np.concatenate([masks & (coverage <= 0.5), coverage[None] > 0.5])
        if too_hidden(np.concatenate([masks, visible[-1:]]), visible):
            continue
        canvas = painted(canvas, coverage, random)
        masks, labels = visible, [*labels, label]
        if len(labels) == wanted:
            break
    if not labels:
        return scene(seed + 50_000_000)
    return Scene(lit(canvas, random), boxes_of(masks), np.array(labels), masks)


def scenes(seeds: range) -> Iterator[Scene]:
    return map(scene, seeds)


def placed_shape(random: RandomState) -> tuple[int, Array]:
    """A class and its coverage (SIZE, SIZE) somewhere on the canvas, turned, of any size."""
    label = random.randint(len(SHAPES))
    radius = np.exp(random.uniform(*np.log(RADIUS)))
    x0, y0 = random.uniform(0.4 * radius, SIZE - 0.4 * radius, 2)
    turn = random.uniform(0, 2 * np.pi)
    y, x = np.mgrid[:SIZE, :SIZE].astype(np.float32) + 0.5
    x, y = x - x0, y - y0
    turned = (x * np.cos(turn) + y * np.sin(turn), y * np.cos(turn) - x * np.sin(turn))
    return label, np.clip(0.5 - SHAPES[label](*turned, radius), 0, 1)


def too_hidden(before: NDArray[np.bool_], now: NDArray[np.bool_]) -> bool:
    """Whether a mask (N, SIZE, SIZE) has lost too much, or the new one is a splinter."""
    kept, area = now.sum((1, 2)), before.sum((1, 2))
    return bool(np.any(kept < MOST_HIDDEN * area) or np.any(kept < 60))


def painted(canvas: Array, coverage: Array, random: RandomState) -> Array:
    """The shape in one colour that stands out, shaded from side to side."""
    ground = (canvas * coverage[..., None]).sum((0, 1)) / coverage.sum()
    color = random.uniform(0, 255, 3)
    while np.linalg.norm(color - ground) < CONTRAST:
        color = random.uniform(0, 255, 3)
    shade = 1 + random.uniform(0, 0.3) * ramp(random)[..., None]
    return canvas + coverage[..., None] * (color * shade - canvas)


def background(random: RandomState) -> Array:
    """Two colours mixed by clouds, and on half of the canvases by stripes (SIZE, SIZE, 3)."""
    here, there = random.uniform(0, 255, (2, 3))
    mix = 0.5 + random.uniform(0.1, 0.5) * ramp(random) + random.uniform(0, 0.6) * clouds(random)
    if random.uniform() < 0.5:
        wave = np.sin(ramp(random) * random.uniform(10, 60))
        mix = mix + random.uniform(0.05, 0.3) * wave
    return here + np.clip(mix, 0, 1)[..., None] * (there - here)


def ramp(random: RandomState) -> Array:
    """From -1 to 1 across the canvas (SIZE, SIZE), in any direction."""
    angle = random.uniform(0, 2 * np.pi)
    y, x = np.mgrid[:SIZE, :SIZE].astype(np.float32) / (SIZE - 1) * 2 - 1
    return (x * np.cos(angle) + y * np.sin(angle)) / np.sqrt(2)


def clouds(random: RandomState) -> Array:
    """Noise (SIZE, SIZE) in -1..1 on a coarse grid, linear in between."""
    cells = random.randint(3, 17)
    coarse = random.uniform(-1, 1, (cells, cells))
    at = np.linspace(0, cells - 1, SIZE)
    rows = np.stack([np.interp(at, np.arange(cells), column) for column in coarse.T], axis=1)
    return np.stack([np.interp(at, np.arange(cells), row) for row in rows])


def lit(canvas: Array, random: RandomState) -> NDArray[np.uint8]:
    """Under uneven light, with the noise of a sensor, as 8-bit pixels."""
    light = random.uniform(0.6, 1.1) * (1 + random.uniform(0, 0.35) * ramp(random)[..., None])
    noise = random.uniform(1, 12) * random.standard_normal(canvas.shape)
    return np.clip(np.rint(canvas * light + noise), 0, 255).astype(np.uint8)


def boxes_of(masks: NDArray[np.bool_]) -> Array:
    """(N, SIZE, SIZE) → (N, 4), the smallest box around each."""
    across, down = masks.any(1), masks.any(2)
    first = [across.argmax(1), down.argmax(1)]
    last = [SIZE - across[:, ::-1].argmax(1), SIZE - down[:, ::-1].argmax(1)]
    return np.stack([*first, *last], axis=1).astype(np.float32)
