"""Two computations of one tensor: how far apart they are, and what no bound allows."""

from __future__ import annotations

import numpy as np
import pytest

from npumake.bundle.program import Tensor
from npumake.debug.tensor_agreement import tensor_agreement

CODES = Tensor((2, 2), "int8", 0.5, 3)
FLOATS = Tensor((2, 2), "float32")
NUMBERS = Tensor((2, 2), "int64")
A = np.array([[1, 2], [3, 4]], np.int8)


def test_codes_are_counted_where_they_differ_most() -> None:
    found = tensor_agreement(A, A + np.array([[0, 1], [-3, 0]], np.int8), CODES)
    assert (found.codes, found.relative, found.position) == (3, None, (1, 0))


def test_real_numbers_on_a_grid_are_codes_of_it() -> None:
    real = np.array([[-1.0, -0.5], [0.0, 1.5]], np.float32)  # the last is one code too many
    assert tensor_agreement(A, real, CODES).codes == 2


def test_floats_are_held_to_the_largest_magnitude() -> None:
    real = np.array([[1, -8], [0, 4]], np.float32)
    found = tensor_agreement(real, real + np.float32([[0, 0], [0.5, 0]]), FLOATS)
    assert (found.codes, found.relative) == (None, 0.5 / 8)


def test_integers_without_a_grid_differ_by_what_they_are() -> None:
    assert tensor_agreement(A.astype(np.int64), A.astype(np.int64) + 7, NUMBERS).codes == 7


@pytest.mark.parametrize("grid", [CODES, FLOATS])
@pytest.mark.parametrize(
    ("made", "said"),
    [
        (A.astype(np.float32).reshape(4), "the shape [4], not [2, 2]"),
        (A.astype(np.float32) * np.float32(np.nan), "nan at [0, 0]"),
        (np.full((2, 2), np.inf, np.float32), "inf at [0, 0]"),
        (A > 2, "it is bool, not float32"),
    ],
)
def test_no_bound_allows(grid: Tensor, made: np.ndarray, said: str) -> None:
    found = tensor_agreement(A.astype(np.float32), made, grid)
    assert said in found.problem


def test_infinity_that_is_expected_is_no_difference() -> None:
    real = np.array([[1, -np.inf], [np.nan, 4]], np.float32)
    assert tensor_agreement(real, real.copy(), FLOATS).relative == 0.0
    assert tensor_agreement(real, np.nan_to_num(real), FLOATS).problem


def test_an_empty_tensor_agrees_with_itself() -> None:
    none = np.zeros((0, 3), np.float32)
    assert tensor_agreement(none, none, FLOATS).relative == 0.0
