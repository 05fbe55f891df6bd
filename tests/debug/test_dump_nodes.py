"""A changed node and a changed picture are told by running the program so."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from debug.test_dumps import IMAGES, behind, board, board_of, held, program, samples, saved

__all__ = ["board", "program", "samples"]  # fixtures


def recomputed(program, samples, tensor, **constants):
    """The board's tensors where the step of this tensor has other constants."""
    steps = tuple(
        replace(step, constants={**step.constants, **constants}) if tensor in step.outputs else step
        for step in program.instructions
    )
    return board_of(replace(program, instructions=steps), samples, 0)


@pytest.mark.parametrize("change", ["weights rotated", "height and width exchanged"])
def test_weights_in_another_order(tmp_path, program, samples, change):
    step = next(s for s in program.instructions if IMAGES[0] in s.outputs)
    weight = step.constants["weight"]
    other = np.flip(weight, (2, 3)) if change == "weights rotated" else weight.swapaxes(2, 3)
    values = recomputed(program, samples, IMAGES[0], weight=np.ascontiguousarray(other))
    comparison = held(saved(tmp_path, {name: values[name] for name in IMAGES}), program, samples)
    assert comparison.first is not None
    assert comparison.first.tensor == IMAGES[0]
    assert comparison.causes[0].kind == "weights"
    assert comparison.causes[0].figures["node"] == step.name


@pytest.mark.parametrize("name", IMAGES)
def test_one_tensor_of_another_sample(tmp_path, program, samples, board, name):
    other = board_of(program, samples, 2)[name]
    image = next(n for n in board if n == "image")
    comparison = held(saved(tmp_path, {**board, name: other}), program, samples, "0")
    assert comparison.first is not None
    assert comparison.first.tensor == name
    assert comparison.causes[0].kind == "other_sample"
    assert "sample 2" in comparison.causes[0].sentence
    assert image in board


@pytest.mark.parametrize(
    ("turn", "kind"),
    [
        (lambda x: np.flip(x, 3), "orientation"),
        (lambda x: np.flip(x, (2, 3)), "orientation"),
        (lambda x: x.min() + (x - x.min()) / 2, "brightness"),
        (lambda x: np.roll(x, 2, 3), "shift"),
    ],
)
def test_another_picture_without_its_input(tmp_path, program, samples, board, turn, kind):
    lowest = min(float(samples.read(index)["image"].min()) for index in range(len(samples)))
    image = samples.read(0)["image"]
    turned = lowest + (image - lowest) / 2 if kind == "brightness" else turn(image)
    fed = np.ascontiguousarray(turned, np.float32)
    values = behind(program, dict(board), "image", fed)
    comparison = held(saved(tmp_path, {name: values[name] for name in IMAGES}), program, samples)
    assert comparison.first is not None
    assert comparison.causes[0].kind == kind
