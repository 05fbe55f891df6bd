"""Mixed precision: the cheapest set of nodes to promote for a required score.

A trial is a set of promoted names with its score and cost. The search starts from the sensitivity
of each name, which is the score that it alone loses, and its cost:

    1  order     names by sensitivity / cost, descending, within the budget; and in graph order,
                 where neighbors share the tensors between them
    2  walking   the shortest prefix of each order with a sufficient score; the cheaper one wins.
                 Scores do not always rise with the prefix, so bisection would miss it
    3  thinning  drops each name of the prefix, the least useful first, if the rest suffices

A prefix of k names takes at most 1 + 3 k measurements, and never costs more than promotion from the
front. The caller measures. Trials come in a fixed order, so results of an interrupted search can be
reused.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple


class PromotionTrial(NamedTuple):
    """A set of promoted names with its score and cost."""

    names: frozenset[str]
    score: float  # larger is better, such as the cosine of the outputs
    cost: float


class Search(NamedTuple):
    chosen: PromotionTrial
    trials: tuple[PromotionTrial, ...]  # all that were measured, in order


def pareto_front(trials: Iterable[PromotionTrial]) -> tuple[PromotionTrial, ...]:
    """The trials that no other beats: cheapest first, each better than all cheaper ones."""
    front: list[PromotionTrial] = []
    for trial in sorted(trials, key=lambda t: (t.cost, -t.score, sorted(t.names))):
        if not front or trial.score > front[-1].score:
            front.append(trial)
    return tuple(front)


def search(
    sensitivities: Mapping[str, float],
    costs: Mapping[str, float],
    measure: Callable[[frozenset[str]], float],
    goal: float,
    budget: float,
) -> Search:
    """The cheapest set that scores `goal` within `budget`; otherwise the best set tried.

    Every name has a cost of at least zero; names are in graph order.
    """
    trials: dict[frozenset[str], PromotionTrial] = {}

    def trial(names: Iterable[str]) -> PromotionTrial:
        chosen = frozenset(names)
        if chosen not in trials:
            cost = math.fsum(costs[name] for name in chosen)
            trials[chosen] = PromotionTrial(chosen, measure(chosen), cost)
        return trials[chosen]

    if trial(()).score >= goal:
        return Search(trial(()), tuple(trials.values()))
    orders = _orders(sensitivities, costs)
    enough: list[PromotionTrial] = []
    for order in orders:
        max_cost = enough[0].cost if enough else math.inf
        shortest = _shortest(_affordable(order, costs, budget), trial, goal, max_cost)
        enough += [shortest] if shortest.score >= goal else []
    if not enough:
        best = max(trials.values(), key=lambda t: (t.score, -t.cost))
        return Search(best, tuple(trials.values()))
    chosen = min(enough, key=lambda t: t.cost)
    for name in reversed(orders[0]):
        without = trial(chosen.names - {name})
        chosen = without if without.score >= goal else chosen
    return Search(chosen, tuple(trials.values()))


def _orders(
    sensitivities: Mapping[str, float], costs: Mapping[str, float]
) -> tuple[list[str], list[str]]:
    """The names by sensitivity for their cost, and in graph order."""

    def use(name: str) -> float:
        return sensitivities[name] / costs[name] if costs[name] else math.inf

    return sorted(sensitivities, key=lambda name: (-use(name), name)), list(sensitivities)


def _affordable(order: Sequence[str], costs: Mapping[str, float], budget: float) -> list[str]:
    """The names in this order, without those that exceed the remaining budget."""
    chosen: list[str] = []
    for name in order:
        if math.fsum(costs[member] for member in (*chosen, name)) <= budget:
            chosen.append(name)
    return chosen


def _shortest(
    order: Sequence[str],
    trial: Callable[[Iterable[str]], PromotionTrial],
    goal: float,
    max_cost: float,
) -> PromotionTrial:
    """The shortest prefix of `order` that suffices, or the first that costs `max_cost` or more; all
    of it otherwise."""
    latest = trial(())
    for length in range(1, len(order) + 1):
        latest = trial(order[:length])
        if latest.score >= goal or latest.cost >= max_cost:
            break
    return latest
