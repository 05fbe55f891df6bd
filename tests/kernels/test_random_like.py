"""Random values keep the distribution of an array, and are not the array."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from npumake.kernels.random_like import (
    DEVIATION_TOLERANCE,
    MEAN_TOLERANCE,
    MIN_MATCHED_VALUES,
    random_like,
)

RNG = np.random.default_rng(7)
ARRAYS = {
    "normal": RNG.normal(0.1, 0.2, (32, 16, 3, 3)),
    "positive": RNG.gamma(0.5, 2.0, 4096),
    "long tail": RNG.standard_t(2, 5000),
    "sparse": RNG.normal(size=4096) * (RNG.random(4096) < 0.1),
    "two peaks": np.concatenate([RNG.normal(-5, 0.1, 900), RNG.normal(5, 0.1, 100)]),
    "negative": -RNG.gamma(2.0, 1.0, 777),
    "few": RNG.normal(size=MIN_MATCHED_VALUES),
}
TYPES = ["float32", "float64", "float16"]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", ARRAYS)
def test_of_many_values_the_distribution_stays(name: str, dtype: str) -> None:
    values = ARRAYS[name].astype(dtype)
    drawn = random_like(values, np.random.default_rng(0))
    assert (drawn.shape, drawn.dtype) == (values.shape, values.dtype)
    assert (drawn.min(), drawn.max()) == (values.min(), values.max())
    assert np.count_nonzero(drawn) == np.count_nonzero(values)
    wide, real = drawn.astype(np.float64), values.astype(np.float64)
    assert abs(wide.mean() - real.mean()) <= MEAN_TOLERANCE * real.std()
    assert abs(wide.std() / real.std() - 1) <= DEVIATION_TOLERANCE
    assert np.isin(wide.ravel(), real.ravel()).mean() < 1  # they are others


@pytest.mark.parametrize("name", ["normal", "positive", "long tail", "sparse"])
def test_no_trained_value_is_left_but_the_ends_and_zero(name: str) -> None:
    values = ARRAYS[name]
    drawn = random_like(values, np.random.default_rng(0))
    same = np.isin(drawn, values) & (drawn != 0)
    assert same.sum() <= 2


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32"])
def test_codes_stay_codes(dtype: str) -> None:
    values = np.clip(RNG.normal(60, 20, 4096), 0, 127).astype(dtype)
    drawn = random_like(values, np.random.default_rng(0))
    assert drawn.dtype == values.dtype
    assert (drawn.min(), drawn.max()) == (values.min(), values.max())
    assert np.count_nonzero(drawn) == np.count_nonzero(values)
    assert abs(drawn.mean() - values.mean()) < 1


def test_a_seed_gives_the_same_values_and_another_gives_others() -> None:
    values = ARRAYS["normal"].astype(np.float32)
    first, again, other = (random_like(values, np.random.default_rng(n)) for n in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


@given(
    hnp.arrays(
        st.sampled_from(["float32", "float64", "int8", "uint8", "int32"]),
        hnp.array_shapes(min_dims=0, max_side=5, min_side=0),
    )
)
def test_of_any_array_ends_zeros_and_what_is_not_finite_stay(values: np.ndarray) -> None:
    with np.errstate(all="ignore"):
        drawn = random_like(values, np.random.default_rng(0))
    assert (drawn.shape, drawn.dtype) == (values.shape, values.dtype)
    assert np.count_nonzero(drawn) == np.count_nonzero(values)
    for kind in (np.isnan, np.isposinf, np.isneginf):
        assert kind(drawn.astype(np.float64)).sum() == kind(values.astype(np.float64)).sum()
    finite = values[np.isfinite(values.astype(np.float64))]
    if finite.size:
        left = drawn[np.isfinite(drawn.astype(np.float64))]
        assert (left.min(), left.max()) == (finite.min(), finite.max())
