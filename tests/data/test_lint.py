"""What is wrong with a set of samples is told with the names of its files."""

import numpy as np

from npumake.data.facts import fact
from npumake.data.lint import LintedInput, input_findings, sample_findings

RNG = np.random.default_rng(0)


def linted(arrays, role="data", name="x"):
    facts = [fact(f"{n}.npy", np.asarray(array, np.float32)) for n, array in enumerate(arrays)]
    return LintedInput(name, role, facts)


def told(arrays, allowed=None):
    only = linted(arrays)
    found = [*input_findings(only, allowed), *(finding for _, finding in sample_findings([only]))]
    return {finding.kind: finding.what for finding in found}


def of_samples(**inputs):
    """The kinds of findings about whole samples, each with its input."""
    linted_inputs = [linted(arrays, role, name) for name, (role, arrays) in inputs.items()]
    return [(own.name, finding.kind) for own, finding in sample_findings(linted_inputs)]


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


IDS = [np.arange(4) + n for n in range(9)]
ONES, ZEROS = [np.ones(4)] * 9, [np.zeros((2, 3))] * 9


def test_a_mask_and_a_cache_repeat_by_nature():
    cache = [np.zeros((2, 3)), *good(7), np.zeros((2, 3))]
    assert of_samples(ids=("discrete", IDS), mask=("discrete", ONES), cache=("data", cache)) == []
    assert of_samples(ids=("discrete", IDS), mask=("data", ONES), cache=("data", ZEROS)) == []


def test_masks_alone_repeat_too():
    masks = [np.array([0, n % 2, 1, 1]) for n in range(9)]
    assert of_samples(mask=("discrete", masks)) == []
    assert of_samples(mask=("discrete", masks), other=("discrete", masks)) == []


def test_the_same_ids_twice_are_a_copy_as_a_whole_alone():
    twice = [*IDS[:8], IDS[0]]
    assert of_samples(ids=("discrete", twice)) == [("ids", "duplicate")]
    assert of_samples(ids=("discrete", twice), mask=("discrete", ONES)) == [("ids", "duplicate")]
    assert of_samples(ids=("discrete", twice), position=("discrete", IDS)) == []


def test_a_sample_is_blank_where_every_array_is():
    silent, sound = [*ZEROS[:1], *good(8)], [*ZEROS[:1], *good(8)]
    rate = [[16000]] * 9
    found = of_samples(sound=("data", sound), state=("data", silent), rate=("discrete", rate))
    assert found == [("sound", "blank")]
    assert of_samples(sound=("data", good(9)), state=("data", silent)) == []


def test_a_blank_picture_is_found_whatever_the_ids_do():
    dark = [np.zeros((3, 4)), *good(8)]
    assert of_samples(ids=("discrete", IDS), image=("picture", dark)) == [("image", "blank")]
    all_dark = [np.full((3, 4), n) for n in range(9)]
    assert of_samples(ids=("discrete", IDS), image=("picture", all_dark)) == [("image", "blank")]


def test_one_picture_goes_with_two_texts_and_not_with_all():
    first, *rest = good(8)
    twice, always = [first, *rest, first], [first] * 9
    assert of_samples(ids=("discrete", IDS), image=("picture", twice)) == []
    assert of_samples(ids=("discrete", IDS), image=("picture", always)) == [("image", "duplicate")]


def test_unused_positions_of_a_cache_are_no_channels():
    """In (batch, position, feature) the second axis looks like channels."""
    cache = [np.concatenate([np.zeros((1, 5, 8)), RNG.normal(size=(1, 3, 8))], 1) for _ in "x" * 9]
    assert [f.kind for f in input_findings(linted(cache))] == ["constant"]
    assert not list(input_findings(linted(cache), is_alone=False))


def test_a_mask_that_adds_minus_infinity_is_no_wild_sample():
    masks = [np.array([[0.0, -np.inf]]), *good(8)]
    assert not list(input_findings(linted(masks), (-np.inf, np.inf)))
