"""Thresholds against the raw data, and kl against the published algorithm, loop for loop."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from draws import examples
from npumake.kernels.histogram import BINS, Histogram, histogram, non_empty
from npumake.project.sections import Calibration
from npumake.quant.calibration.thresholds import INT8_LEVELS, threshold

KL, MAX, MSE = Calibration("kl"), Calibration("max"), Calibration("mse")


def percentile(share):
    return Calibration("max_percentile", share)


def normal(seed=0, count=20_000):
    return np.random.default_rng(seed).normal(size=count)


DISTRIBUTIONS = {
    "normal": normal(),
    "few samples": normal(count=300),
    "after a ReLU": np.maximum(normal(1), 0),
    "a spike at zero and a far tail": np.where(normal(2) > 1.5, normal(3) ** 4, 0),
    "heavy tails": np.random.default_rng(4).standard_t(2, 20_000),
    "exponential": np.random.default_rng(5).exponential(size=20_000),
    "uniform": np.random.default_rng(6).uniform(-1, 1, 20_000),
    "one outlier": np.append(normal(7), 40.0),
    "two humps": np.concatenate([normal(8), 9 + normal(9) / 10]),
    "three values": np.repeat([0.0, 0.3, -1.0], 50),
    "constant": np.full(100, -3.3),
}
every_distribution = pytest.mark.parametrize(
    "x", [x.astype(np.float32) for x in DISTRIBUTIONS.values()], ids=DISTRIBUTIONS
)


def divergence(h, i):
    """KL(P || Q) for keeping the first i bins of h; no more than one level's share is outside."""
    if h[i:].sum() > h.sum() / INT8_LEVELS:
        return math.inf
    p = h[:i].copy()
    p[-1] += h[i:].sum()
    chunk = np.repeat(
        np.arange(INT8_LEVELS), np.diff(np.arange(INT8_LEVELS + 1) * i // INT8_LEVELS)
    )
    mass, filled = (np.bincount(chunk, per_bin, INT8_LEVELS) for per_bin in (h[:i], h[:i] > 0))
    q = np.where(h[:i] > 0, (mass / np.maximum(filled, 1))[chunk], 0)
    p, q = p / p.sum(), q / max(q.sum(), 1)
    if (q[p > 0] == 0).any():
        return math.inf
    return float((p[p > 0] * np.log(p[p > 0] / q[p > 0])).sum())


def published(x):
    """The threshold by trying every candidate."""
    statistics = histogram(x)
    width = BINS // KL.bins
    h = statistics.counts.sum(axis=0).reshape(-1, width).sum(axis=1).astype(float)
    h[0] = h[1]
    candidates = range(INT8_LEVELS, int(np.flatnonzero(h)[-1]) + 2)
    best = min(candidates, key=lambda i: divergence(h, i))
    return min(best * width * 2.0**statistics.exponent, float(np.abs(x).max()))


@every_distribution
def test_kl_is_the_published_algorithm(x):
    assert threshold(histogram(x), KL) == published(x)


def test_kl_is_the_maximum_where_there_is_nothing_to_weigh():
    assert threshold(histogram(np.zeros(9, np.float32)), KL) == 0
    assert threshold(histogram(np.array([0.3], np.float32)), KL) == np.float32(0.3)
    counts = np.zeros((2, BINS), np.int64)
    counts[1, : INT8_LEVELS * BINS // KL.bins] = (
        5  # no more bins than levels: nothing is lost by keeping all
    )
    assert threshold(Histogram(-12, *non_empty(counts), 0.0, 0.24, 5120), KL) == 0.24


def test_kl_cuts_off_one_outlier_and_keeps_a_uniform_whole():
    assert threshold(histogram(DISTRIBUTIONS["one outlier"].astype(np.float32)), KL) < 8
    assert threshold(histogram(DISTRIBUTIONS["uniform"].astype(np.float32)), KL) > 0.98


def test_kl_takes_no_more_than_the_share_of_one_level_off_a_sparse_tensor():
    x = np.where(normal(2) > 1.5, normal(3) ** 4, 0).astype(np.float32)
    x = np.concatenate([x, np.abs(normal(4, 200_000)).astype(np.float32) / 1000])
    assert np.mean(np.abs(x) > threshold(histogram(x), KL)) <= 1 / INT8_LEVELS


def test_kl_does_not_see_how_many_exact_zeros_there_are():
    x = normal().astype(np.float32)
    padded = np.concatenate([x, np.zeros(10 * len(x), np.float32)])
    assert threshold(histogram(padded), KL) == threshold(histogram(x), KL)


@every_distribution
def test_max_is_the_largest_magnitude(x):
    assert threshold(histogram(x), MAX) == np.abs(x).max()


@every_distribution
@pytest.mark.parametrize("share", [0.5, 0.9, 0.999, 0.99995, 1.0])
def test_a_percentile_is_that_of_the_data_within_one_bin(x, share):
    statistics = histogram(x)
    exact = np.quantile(np.abs(x), share, method="inverted_cdf")
    assert 0 <= threshold(statistics, percentile(share)) - exact <= 2.0**statistics.exponent


@every_distribution
def test_a_larger_percentile_never_cuts_more(x):
    shares = (0.5, 0.8, 0.9, 0.99, 0.999, 1.0)
    tops = [threshold(histogram(x), percentile(share)) for share in shares]
    assert tops == sorted(tops)
    assert tops[-1] == np.abs(x).max()


floats = npst.arrays(np.float32, st.integers(1, 60), elements=st.floats(-1e6, 1e6, width=32))


@pytest.mark.parametrize(
    "calibration", [KL, MAX, percentile(0.9), MSE], ids=["kl", "max", "percentile", "mse"]
)
@examples(40)
@given(floats)
def test_a_threshold_is_within_the_data_and_scales_with_it(calibration, x):
    top = threshold(histogram(x), calibration)
    assert 0 <= top <= np.abs(x).max()
    if np.abs(x).max() > 2.0**-100:  # where doubling is exact, in the finest bins too
        assert threshold(histogram(2 * x), calibration) == 2 * top
        assert threshold(histogram(-x), calibration) == top
