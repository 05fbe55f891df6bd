"""The search for mixed precision: good enough, within the budget, as cheap as it finds."""

import math

from hypothesis import given
from hypothesis import strategies as st

from npumake.quant.search.mixed_precision import PromotionTrial, pareto_front, search

NAMES = [f"n{index}" for index in range(12)]
figures = st.dictionaries(
    st.sampled_from(NAMES), st.tuples(st.floats(0, 1), st.sampled_from([0.5, 1.0, 3.0]))
)


def searched(lost, costs, wanted, budget):
    """A model that loses the sum of what is not promoted; what was asked, too."""
    asked = []

    def measure(names):
        asked.append(names)
        return -math.fsum(lost[name] for name in sorted(lost.keys() - names))

    return search(lost, costs, measure, wanted, budget), asked


@given(figures, st.floats(-12, 0), st.floats(0, 20))
def test_the_choice_suffices_where_the_budget_lets_it_and_no_name_of_it_can_go(
    given, wanted, budget
):
    lost, costs = ({name: pair[at] for name, pair in given.items()} for at in (0, 1))
    (chosen, trials), asked = searched(lost, costs, wanted, budget)
    assert chosen.cost <= budget
    assert [trial.names for trial in trials] == asked
    assert len(asked) == len(set(asked)) <= 1 + 3 * len(lost)
    if chosen.score < wanted:
        assert chosen.score == max(trial.score for trial in trials)
    for name in chosen.names if chosen.score >= wanted else ():
        rest = lost.keys() - chosen.names | {name}
        assert -math.fsum(lost[one] for one in sorted(rest)) < wanted


def test_the_sensitive_are_promoted_first():
    lost = {"a": 0.5, "b": 0.25, "c": 0.0625}
    assert searched(lost, dict.fromkeys(lost, 1.0), -0.1, 9.0)[0].chosen.names == {"a", "b"}


def test_a_model_that_is_good_enough_costs_one_measurement():
    found, asked = searched({"a": 0.5}, {"a": 1.0}, -1.0, 9.0)
    assert (found.chosen.names, len(asked)) == (frozenset(), 1)


def test_an_interrupted_search_asks_the_same_questions_again():
    lost = {name: 0.01 * (index + 1) for index, name in enumerate(NAMES)}
    costs = dict.fromkeys(lost, 1.0)
    assert searched(lost, costs, -0.1, 9.0) == searched(lost, costs, -0.1, 9.0)


def test_the_front_has_every_trial_that_is_not_beaten():
    def trial(name, score, cost):
        return PromotionTrial(frozenset({name}), score, cost)

    cheap, good, best = trial("a", 0.9, 1.0), trial("b", 0.95, 2.0), trial("c", 0.99, 5.0)
    beaten = trial("d", 0.94, 3.0), trial("e", 0.9, 2.0), trial("f", 0.99, 6.0)
    assert pareto_front([best, *beaten, good, cheap]) == (cheap, good, best)
