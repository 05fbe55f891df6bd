import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from npumake.kernels.histogram import BINS, MIN_EXPONENT, Histogram, histogram, merged

quick = settings(max_examples=80)
finite = st.floats(width=32, allow_nan=False, allow_infinity=False)
tiny = st.floats(-(2.0**-100), 2.0**-100, width=32)  # so that a zero meets nothing large
samples = arrays.arrays(np.float32, st.integers(0, 60), elements=finite)
samples |= arrays.arrays(np.float32, st.integers(0, 60), elements=tiny)


def as_bytes(h: Histogram) -> tuple[object, ...]:
    return h.exponent, h.counts.tobytes(), h.low.hex(), h.high.hex(), h.count


@quick
@given(samples, st.lists(st.integers(0, 60), max_size=4), st.randoms(use_true_random=False))
def test_any_split_in_any_order_is_the_whole(x, cuts, random):
    parts = [histogram(part) for part in np.split(x, sorted(cuts))]
    random.shuffle(parts)
    total = parts[0]
    for part in parts[1:]:
        total = merged(part, total)
    assert as_bytes(total) == as_bytes(histogram(x))


@quick
@given(samples)
def test_every_value_is_in_its_bin(x):
    h = histogram(x)
    counts = np.zeros((2, BINS), np.int64)
    for value in x.astype(np.float64):
        counts[int(value >= 0), int(np.floor(np.ldexp(abs(value), -h.exponent)))] += 1
    assert np.array_equal(h.counts, counts)
    assert h.count == x.size


@quick
@given(samples.filter(len))
def test_the_exponent_is_the_smallest_that_holds_the_largest(x):
    h = histogram(x)
    largest = float(np.abs(x.astype(np.float64)).max())
    assert largest < BINS * 2.0**h.exponent
    assert h.exponent == MIN_EXPONENT or largest >= BINS * 2.0 ** (h.exponent - 1)
    assert (h.low, h.high) == (x.min(), x.max())


def test_many_blocks_are_one_histogram():
    x = np.random.default_rng(0).standard_normal((3, 7, 11, 501), np.float32)
    h = histogram(x)
    edges = np.arange(BINS + 1) * 2.0**h.exponent
    assert np.array_equal(h.counts[1], np.histogram(x[x >= 0], edges)[0])
    assert h.counts.sum() == x.size


def test_negative_zero_is_zero():
    zeros = np.zeros(2, np.float32)
    assert as_bytes(histogram(-zeros)) == as_bytes(histogram(zeros))
    assert histogram(-zeros).exponent == MIN_EXPONENT


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_value_that_is_not_finite_is_refused(bad):
    with pytest.raises(ValueError, match="finite"):
        histogram(np.array([1.0, bad, 2.0], np.float32))
