"""Trains the detector and writes everything this project is made from.

    python projects/shapes-detector/train.py [--steps 2600]   (needs Pillow, onnx, torch==2.13.0)

It paints up to POOL scenes (see scenes.py), learns from them for so many batches, each batch
mirrored, turned and with its colours exchanged at random, and writes

    model.onnx       the network with Ultralytics' names, its decoding and the edgefirst metadata
    samples/*.jpg    the calibration scenes, none of which was learned from

It is seeded and learns on one thread: the same machine writes the same bytes again.
It takes 14 minutes of one core; float mAP50 on the 300 test scenes is 84.7 %, mAP50:95 67.7 %.
"""

from __future__ import annotations

import argparse
import copy
import math
from collections.abc import Iterator
from itertools import permutations
from multiprocessing import Pool
from pathlib import Path

import numpy as np
import onnx
import torch
from export import as_onnx
from loss import Truths, loss
from network import Detector
from onnx.reference import ReferenceEvaluator
from PIL import Image
from scenes import CALIBRATION, MOST_SHAPES, SIZE, TEST, TRAIN, scene, scenes
from torch import Tensor, nn

HERE = Path(__file__).parent
SEED = 0
POOL, STEPS, BATCH = 6000, 2600, 16
LEARNING_RATE, WEIGHT_DECAY, WARM_UP = 3e-3, 1e-2, 100
DECAY = 0.995  # of the running mean of the weights
COLORS = list(permutations(range(3)))


def example(seed: int) -> tuple[np.ndarray, ...]:
    """A scene filled up to MOST_SHAPES: image, boxes, labels, masks at a quarter, there."""
    painted = scene(seed)
    count, quarter = len(painted.labels), SIZE // 4
    masks = painted.masks.reshape(count, quarter, 4, quarter, 4).mean((2, 4)) > 0.5
    filled = [
        np.pad(values, [(0, MOST_SHAPES - count)] + [(0, 0)] * (values.ndim - 1))
        for values in (painted.boxes, painted.labels, masks)
    ]
    return painted.image.transpose(2, 0, 1), *filled, np.arange(MOST_SHAPES) < count


def pool(count: int) -> tuple[Tensor, Truths]:
    with Pool() as workers:
        rows = workers.map(example, range(TRAIN, TRAIN + count), chunksize=50)
    images, boxes, labels, masks, there = (
        torch.from_numpy(np.stack(column)) for column in zip(*rows, strict=True)
    )
    return images, Truths(boxes, labels, masks, there)


def trained(images: Tensor, truths: Truths, steps: int = STEPS) -> Detector:
    """The running mean of the weights after so many batches."""
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    model = Detector().train()
    mean = copy.deepcopy(model)
    optimizer = torch.optim.AdamW(model.parameters(), LEARNING_RATE, weight_decay=WEIGHT_DECAY)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: pace(step, steps))
    for step, rows in enumerate(batches(len(images), steps)):
        image, truth = varied(images[rows], Truths(*(each[rows] for each in truths)))
        value = loss(model(image / 255), truth)
        optimizer.zero_grad()
        value.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 10.0)
        optimizer.step()
        schedule.step()
        follow(mean, model, min(DECAY, (1 + step) / (10 + step)))
        if step % 100 == 0:
            print(f"{step:5} of {steps}: loss {value.item():.2f}", flush=True)
    return mean.eval()


def pace(step: int, steps: int) -> float:
    """The share of LEARNING_RATE: up in a line, down along a cosine."""
    if step < WARM_UP:
        return (step + 1) / WARM_UP
    return 0.02 + 0.98 * (1 + math.cos(math.pi * (step - WARM_UP) / (steps - WARM_UP))) / 2


@torch.no_grad()
def follow(mean: Detector, model: Detector, decay: float) -> None:
    for average, now in zip(mean.state_dict().values(), model.state_dict().values(), strict=True):
        if average.is_floating_point():
            average.lerp_(now, 1 - decay)


def batches(count: int, steps: int) -> Iterator[Tensor]:
    """So many batches; every row once before any comes again."""
    rows = torch.cat([torch.randperm(count) for _ in range(-(-steps * BATCH // count))])
    yield from rows[: steps * BATCH].reshape(steps, BATCH)


def varied(images: Tensor, truths: Truths) -> tuple[Tensor, Truths]:
    """One of the eight symmetries of the square and one order of the colours, at random."""
    boxes, masks = truths.boxes, truths.masks.float()
    images = images[:, COLORS[torch.randint(len(COLORS), ())]]
    left_right, up_down, transposed = torch.randint(2, (3,)).bool()
    if left_right:
        images, masks = images.flip(3), masks.flip(3)
        boxes = torch.stack(
            [SIZE - boxes[..., 2], boxes[..., 1], SIZE - boxes[..., 0], boxes[..., 3]], -1
        )
    if up_down:
        images, masks = images.flip(2), masks.flip(2)
        boxes = torch.stack(
            [boxes[..., 0], SIZE - boxes[..., 3], boxes[..., 2], SIZE - boxes[..., 1]], -1
        )
    if transposed:
        images, masks, boxes = images.mT, masks.mT, boxes[..., [1, 0, 3, 2]]
    boxes = boxes * truths.there[..., None]
    return images.float(), Truths(boxes, truths.labels, masks, truths.there)


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--steps", type=int, default=STEPS, help="batches to learn from")
    steps = parser.parse_args().steps
    (HERE / "samples").mkdir(exist_ok=True)
    for number, painted in enumerate(scenes(CALIBRATION)):
        picture = Image.fromarray(painted.image)  # colour at full resolution: noise has it
        picture.save(HERE / f"samples/{number:04}.jpg", quality=92, subsampling=0)

    detector = trained(*pool(min(POOL, steps * BATCH)), steps)
    model = as_onnx(detector)
    onnx.checker.check_model(model, full_check=True)
    (HERE / "model.onnx").write_bytes(model.SerializeToString(deterministic=True))

    image = scene(TEST[0]).image.transpose(2, 0, 1)[None] / np.float32(255)
    _, protos = ReferenceEvaluator(model).run(None, {"images": image})
    with torch.no_grad():
        expected = detector(torch.from_numpy(image)).protos.numpy()
    print(f"{sum(p.numel() for p in detector.parameters()):,} weights")
    print(f"model.onnx is within {abs(protos - expected).max():.1e} of the trained network")


if __name__ == "__main__":
    main()
