"""Observations survive their way to another process: their figures are the same, to the bit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from npumake.evaluate.average_precision import (
    ImageDetections,
    Truths,
    matches_of_boxes,
    precision_of,
)
from npumake.evaluate.batches import decoded, encoded
from npumake.kernels.measure import Agreement, agreement

RNG = np.random.default_rng(0)


def there_and_back(value: Any) -> Any:
    return decoded(json.loads(json.dumps(encoded(value))))


def images() -> Iterator[Any]:
    """Matches by class of pictures with many, one and no objects."""
    for count in (7, 1, 0):
        boxes = RNG.uniform(0, 1, (count, 4)).cumsum(1)
        labels = RNG.integers(0, 3, count)
        found = ImageDetections(boxes + 0.01, RNG.uniform(0, 1, count), labels)
        yield matches_of_boxes(found, Truths(boxes, labels, np.zeros(count, bool)))


def test_the_precision_of_matches_is_the_same() -> None:
    matches = list(images())
    returned = [there_and_back(image) for image in matches]
    assert [[*image] for image in returned] == [[*image] for image in matches]
    before, after = (precision_of(rows, 3).by_class for rows in (matches, returned))
    assert before.tobytes() == after.tobytes()
    assert np.isfinite(before).any()


@pytest.mark.parametrize("scale", [1e-30, 1.0, 3e7])
def test_sums_are_the_same_to_the_bit(scale: float) -> None:
    a, b = (RNG.normal(size=1000).astype(np.float32) * np.float32(scale) for _ in range(2))
    row = [agreement(a, b), Agreement(), agreement(a, np.full_like(b, np.nan))]
    assert repr(there_and_back(row)) == repr(row)


@pytest.mark.parametrize("rank", [0, 7, np.int64(999)])
def test_a_rank_is_a_number(rank: int) -> None:
    assert there_and_back(rank) == rank
