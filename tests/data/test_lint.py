"""What is wrong with a set of samples is told with the names of its files."""

import numpy as np

from npumake.data.facts import fact
from npumake.data.lint import findings

RNG = np.random.default_rng(0)


def told(arrays, allowed=None):
    facts = [fact(f"{n}.npy", np.asarray(array, np.float32)) for n, array in enumerate(arrays)]
    return {finding.kind: finding.what for finding in findings(facts, allowed)}


def good(count: int) -> list[np.ndarray]:
    return [RNG.uniform(0, 255, (3, 4)) for _ in range(count)]


def test_a_good_set_is_told_nothing():
    assert told(good(8), (0, 255)) == {}


def test_seven_samples_are_few():
    assert told(good(7)) == {"few": "7 samples, at least 8 are needed"}


def test_a_sample_of_one_value_is_blank():
    blank = np.full((3, 4), 7.5)
    assert told([*good(8), blank]) == {"blank": "samples with one value all over: 8.npy (7.5)"}


def test_a_copy_names_its_original():
    first, *rest = good(8)
    what = told([first, *rest, first, first])["duplicate"]
    assert what == "the same sample more than once: 8.npy = 0.npy, 9.npy = 0.npy"


def test_values_out_of_range_are_told_with_their_extremes():
    outside = np.linspace(-3, 256, 12).reshape(3, 4)
    assert told([*good(8), outside], (0, 255)) == {
        "range": "values outside 0..255: 8.npy (-3..256)"
    }


def test_a_long_list_is_cut():
    what = told([np.full(4, n) for n in range(9)])["blank"]
    assert what.endswith("3.npy (3), 4.npy (4) and 4 more")


def test_a_single_number_may_repeat():
    assert told([[16000]] * 8) == {}
