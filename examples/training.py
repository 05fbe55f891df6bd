"""What the training scripts of the gallery share: a seeded loop, and the export to ONNX.

    python examples/keyword-spotting/train.py          (needs torch==2.13.0 and onnx)

A script learns on one thread from samples that its task.py draws from seeds: the same machine
writes the same bytes again. Samples of the test and of the calibration have seeds of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import onnx
import torch
from torch import Tensor, nn

SEED = 0
LEARNING_RATE, WEIGHT_DECAY = 3e-3, 1e-2
OPSET = 13
CALIBRATION = range(10_000, 10_032)  # seeds
TRAIN = 100_000  # the first seed of training; those of the test begin at 0

Batches = Iterator[tuple[Tensor, ...]]


def begin() -> None:
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)


def batches(arrays: tuple[np.ndarray, ...], size: int, steps: int) -> Batches:
    """`steps` batches of random rows of the arrays, as tensors."""
    random = np.random.RandomState(SEED)
    for _ in range(steps):
        rows = random.randint(0, len(arrays[0]), size)
        yield tuple(torch.from_numpy(array[rows]) for array in arrays)


def fit(model: nn.Module, data: Batches, steps: int, loss: Callable[..., Tensor]) -> nn.Module:
    """The model after one step of AdamW for each batch; the rate falls to 0 in a half cosine."""
    optimizer = torch.optim.AdamW(model.parameters(), LEARNING_RATE, weight_decay=WEIGHT_DECAY)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, LEARNING_RATE, steps)
    model.train()
    for inputs, *truths in data:
        optimizer.zero_grad()
        loss(model(inputs), *truths).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    return model.eval()


def export(model: nn.Module, example: np.ndarray, file: Path, names: tuple[str, ...]) -> None:
    """Writes the model as ONNX without the paths of this machine; `names` of input and outputs."""
    with torch.no_grad():
        torch.onnx.export(
            model,
            (torch.from_numpy(example),),
            str(file),
            dynamo=False,
            opset_version=OPSET,
            input_names=[names[0]],
            output_names=[*names[1:]],
        )
    network = onnx.load(str(file))
    for node in network.graph.node:
        node.ClearField("doc_string")
    onnx.save(network, str(file))


def write_samples(folder: Path, arrays: Iterator[np.ndarray]) -> None:
    folder.mkdir(exist_ok=True)
    for number, array in enumerate(arrays):
        np.save(folder / f"{number:04}.npy", array)
