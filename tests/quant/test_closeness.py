"""How close answers are: what a detector means, where a cosine sees what is large."""

import math
from dataclasses import replace

import numpy as np
import pytest

from npumake.kernels.measure import cosine
from npumake.quant.search.fidelity import FidelitySamples, FidelityScore, FloatReference
from quant.fidelity_scores import score_of_losses

SAMPLES, POSITIONS = 16, 400
FOUND = range(0, POSITIONS, 25)  # where some sample has an object


def detections():
    """By sample one answer (1, positions, 6): a box in pixels about its position, and two scores;
    in each sample the objects are at other positions."""
    rng = np.random.default_rng(0)
    place = rng.uniform(0, 300, (POSITIONS, 4))
    answers = []
    for number in range(SAMPLES):
        boxes = place + rng.normal(0, 4, place.shape)
        scores = rng.uniform(0, 0.01, (POSITIONS, 2))
        scores[FOUND[number]] = 0.9
        answers.append(np.concatenate([boxes, scores], 1)[None].astype(np.float32))
    return answers


REAL = detections()
YARDSTICK = FloatReference([[answer] for answer in REAL])


def changed(change):
    """The answers with `change(rows, number of the sample)` made to the rows."""
    made = [answer.copy() for answer in REAL]
    for number, answer in enumerate(made):
        change(answer[0], number)
    return made


def close(made):
    return YARDSTICK.figure([[answer] for answer in made]).close.all


def cos(made):
    return cosine(np.stack(REAL), np.stack(made))


def silence(rows, number):
    rows[FOUND[number], 4:] = 0


def murmur(rows, _):
    rows[:, 4:] += 0.02


def shift_everywhere_else(rows, number):
    others = np.arange(POSITIONS) != FOUND[number]
    rows[others, :4] += 6


def shift_what_is_found(rows, number):
    rows[FOUND[number], :4] += 6


def test_the_same_answers_are_close():
    assert close(REAL) == 1.0


def test_objects_that_are_no_longer_found_are_missed_though_a_cosine_is_blind_to_them():
    lost, noisy = changed(silence), changed(murmur)
    assert cos(lost) > 0.9999
    assert close(lost) < 0.8
    assert close(noisy) > 0.98


def test_a_box_counts_where_something_is_found():
    wrong, elsewhere = changed(shift_what_is_found), changed(shift_everywhere_else)
    assert cos(wrong) > cos(elsewhere)
    assert close(wrong) < 0.7
    assert close(elsewhere) > 0.99


def test_a_box_counts_by_its_own_size_not_by_its_place_in_the_picture():
    def coarse(rows, _):
        rows[:, :4] = np.round(rows[:, :4] / 8) * 8

    assert cos(changed(coarse)) > 0.999
    assert close(changed(coarse)) < 0.9


def test_a_class_that_never_occurs_counts_for_nothing():
    class_none = np.random.default_rng(1).uniform(0, 1e-3, (SAMPLES, 1, POSITIONS, 1))
    with_class = [
        [np.concatenate([a, n.astype(np.float32)], 2)]
        for a, n in zip(REAL, class_none, strict=True)
    ]
    made = [[answers[0].copy()] for answers in with_class]
    for (answer,) in made:
        answer[..., 6] = 0
    assert FloatReference(with_class).figure(made).close.all > 0.999


@pytest.mark.parametrize("axes", [(0, 1, 2), (0, 2, 1)], ids=["positions first", "channels first"])
def test_boxes_and_scores_may_be_outputs_of_their_own(axes):
    def apart(answers):
        return [[a[..., :4].transpose(axes), a[..., 4:].transpose(axes)] for a in answers]

    yardstick = FloatReference(apart(REAL))
    assert yardstick.figure(apart(changed(shift_what_is_found))).close.all < 0.7
    assert yardstick.figure(apart(changed(shift_everywhere_else))).close.all > 0.99


def test_an_answer_that_is_one_vector_is_as_close_as_its_cosine():
    rng = np.random.default_rng(2)
    logits = rng.normal(size=(SAMPLES, 1, 10))
    made = logits + rng.normal(0, 0.1, logits.shape)
    yardstick = FloatReference([[row] for row in logits])
    assert yardstick.figure([[row] for row in made]).close.all == pytest.approx(
        cosine(logits, made), abs=1e-6
    )


def test_the_answer_that_comes_off_worst_decides():
    vector = np.arange(1.0, 9.0)[None]
    yardstick = FloatReference([[answer, vector] for answer in REAL])
    assert yardstick.figure([[answer, -vector] for answer in REAL]).close.all == -1.0


def test_of_a_single_sample_the_positions_tell_what_is_usual():
    yardstick = FloatReference([[REAL[0]]])
    assert yardstick.figure([[REAL[0] + 1e-4]]).close.all > 0.999


def test_no_number_is_no_answer():
    nothing = [[np.full_like(answer, math.nan)] for answer in REAL]
    figure = YARDSTICK.figure(nothing)
    assert (figure.close.all, figure.cosine.all) == (0.0, -1.0)


def test_answers_of_another_shape_are_refused():
    with pytest.raises(ValueError, match="shapes differ"):
        close([answer[:, :1] for answer in REAL])


def test_without_a_sample_an_answer_is_as_close_as_if_its_error_were_nowhere():
    def silence_one(rows, number):
        if number == 3:
            silence(rows, number)

    figure = YARDSTICK.figure([[answer] for answer in changed(silence_one)])
    assert figure.close.all < 0.98
    assert figure.close.without[3] == 1.0
    assert max(c for n, c in enumerate(figure.close.without) if n != 3) < figure.close.all + 0.001


def test_a_vector_without_a_sample_is_the_cosine_of_the_others():
    rng = np.random.default_rng(3)
    real, made = rng.normal(size=(2, 4, 1, 9))
    figure = FloatReference([[row] for row in real]).figure([[row] for row in made])
    others = [cosine(np.delete(real, n, 0), np.delete(made, n, 0)) for n in range(4)]
    assert figure.close.without == pytest.approx(others, abs=1e-6)


def test_a_gain_has_a_standard_error_over_the_samples():
    stands = FidelitySamples(0.9, (0.9, 0.9, 0.9))
    assert FidelitySamples(0.92, (0.92, 0.92, 0.92)).gain(stands) == pytest.approx((0.2, 0.0))
    error = math.sqrt(2 / 3 * (0.1**2 + 0.1**2))
    assert FidelitySamples(0.92, (0.91, 0.92, 0.93)).gain(stands) == pytest.approx((0.2, error))


def test_where_nothing_is_lost_nothing_is_given_back():
    assert FidelitySamples(1.0, (1.0, 1.0)).gain(FidelitySamples(1.0, (1.0, 1.0))) == (0.0, 0.0)


def of_all(closeness):
    return FidelitySamples(closeness, (closeness,) * 32)


ONE_TELLS = FidelitySamples(0.92, (0.9, *(0.92,) * 31))
STANDS = FidelityScore(of_all(0.9), of_all(0.99))


@pytest.mark.parametrize(
    ("close", "by_cosine", "helps"),
    [
        (of_all(0.92), of_all(0.98), True),
        (of_all(0.904), of_all(0.99), False),
        (ONE_TELLS, of_all(0.99), False),
        (ONE_TELLS, of_all(0.992), True),
        (of_all(0.898), of_all(0.992), True),
        (of_all(0.89), of_all(0.999), False),
    ],
    ids=["closer", "too little", "by one sample", "alike", "hardly further away", "further away"],
)
def test_a_gain_that_rests_on_one_sample_is_none_unless_the_cosine_says_so(close, by_cosine, helps):
    assert FidelityScore(close, by_cosine).helps(STANDS, 0.05) == helps


@pytest.mark.parametrize(("errors", "helps"), [(0.0, True), (1.0, True), (2.0, False)])
def test_what_costs_has_to_gain_by_more_errors(errors, helps):
    tried = score_of_losses(0.04, 0.09, 0.09, 0.1)  # recovers .2 ± .14
    assert tried.helps(score_of_losses(0.1, 0.1, 0.1, 0.1), 0.05, errors) == helps


@pytest.mark.parametrize(("lost", "is_as_close"), [(0.0, True), (0.001, False)])
def test_no_switch_is_trusted_where_nothing_was_lost(lost, is_as_close):
    exact = score_of_losses(0.0, 0.0, 0.0, 0.0)
    assert score_of_losses(0.0, lost, lost, 0.0).is_as_close(exact, 2.0) == is_as_close


@pytest.mark.parametrize(("of_distributions", "helps"), [(0.97, True), (0.95, False)])
def test_nothing_helps_that_spoils_the_distributions(of_distributions, helps):
    stands = replace(STANDS, distributions=of_all(0.98))
    closer = FidelityScore(of_all(0.95), of_all(0.99), of_all(of_distributions))
    assert closer.helps(stands, 0.05) == helps


@pytest.mark.parametrize(
    ("close", "by_cosine", "gains"),
    [(0.901, 0.991, True), (0.901, 0.99, False), (0.9, 0.991, False), (0.89, 0.999, False)],
)
def test_anything_is_gained_only_where_no_measure_says_otherwise(close, by_cosine, gains):
    assert FidelityScore(of_all(close), of_all(by_cosine)).gains(STANDS) == gains


@pytest.mark.parametrize(
    ("close", "by_cosine", "of_distributions", "gives"),
    [
        (ONE_TELLS, of_all(0.992), 1.0, True),
        (ONE_TELLS, of_all(0.9904), 1.0, False),
        (of_all(0.904), of_all(0.992), 1.0, False),
        (ONE_TELLS, of_all(0.992), 0.95, False),
    ],
    ids=["by both", "too little by the cosine", "too little", "spoilt"],
)
def test_what_only_makes_grids_finer_may_rest_on_one_sample(
    close, by_cosine, of_distributions, gives
):
    stands = replace(STANDS, distributions=of_all(0.98))
    finer = FidelityScore(close, by_cosine, of_all(of_distributions))
    assert finer.gives_back(stands, 0.05) == gives
