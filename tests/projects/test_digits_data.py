"""The committed digits are scikit-learn's, parted as `split` says, and the model reads them."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnxruntime
import pytest
from numpy.typing import NDArray

DIGITS = Path(__file__).parents[2] / "projects" / "digits"
TOP1 = 99.17  # percent of the 600 held-out images: 595 are right


class Digits(NamedTuple):
    """Images (N, 1, 8, 8) and labels (N,) of uint8, and their parts by index."""

    images: NDArray[Any]
    labels: NDArray[Any]
    split: Any


@pytest.fixture(scope="module")
def digits() -> Digits:
    from sklearn.datasets import load_digits  # type: ignore[import-untyped]

    data = load_digits()
    labels = data.target.astype(np.uint8)
    split = runpy.run_path(str(DIGITS / "split.py"))["split"](labels)
    return Digits(data.images.astype(np.uint8)[:, None], labels, split)


def same(committed: NDArray[Any], expected: NDArray[Any]) -> bool:
    return committed.dtype == expected.dtype == np.uint8 and np.array_equal(committed, expected)


def test_every_image_is_in_exactly_one_part(digits: Digits) -> None:
    assert sorted(np.concatenate(digits.split)) == list(range(1797))
    assert [len(part) for part in digits.split] == [1133, 64, 600]


def test_no_image_of_one_part_has_a_twin_in_another(digits: Digits) -> None:
    assert len(np.unique(digits.images, axis=0)) == 1797


def test_every_part_has_the_classes_in_equal_shares(digits: Digits) -> None:
    shares = np.bincount(digits.labels) / len(digits.labels)
    for part in digits.split:
        assert np.all(np.abs(np.bincount(digits.labels[part]) - shares * len(part)) <= 1)


def test_the_samples_are_the_calibration_images_and_nothing_else(digits: Digits) -> None:
    paths = sorted((DIGITS / "samples").iterdir())
    assert [path.name for path in paths] == [f"{number:04}.npy" for number in range(64)]
    for path, row in zip(paths, digits.split.calibration, strict=True):
        assert same(np.load(path), digits.images[[row]])


def test_the_test_images_and_labels_are_the_held_out_ones(digits: Digits) -> None:
    assert same(np.load(DIGITS / "test_images.npy"), digits.images[digits.split.test])
    assert same(np.load(DIGITS / "test_labels.npy"), digits.labels[digits.split.test])


def test_the_float_model_reads_the_held_out_images(digits: Digits) -> None:
    session = onnxruntime.InferenceSession(DIGITS / "model.onnx")
    images = digits.images[digits.split.test] / np.float32(16)
    guesses = [session.run(["logits"], {"image": image[None]})[0].argmax() for image in images]
    assert (
        abs(100 * np.mean(guesses == digits.labels[digits.split.test]) - TOP1) <= 0.2
    )  # one image


def test_model_and_data_stay_under_200_kb() -> None:
    files = (DIGITS / "model.onnx", *DIGITS.glob("*.npy"), *DIGITS.glob("samples/*.npy"))
    assert sum(file.stat().st_size for file in files) < 200_000
