"""Objective: promotes nodes until the whole model reaches a goal.

    sensitivity   the loss where all other nodes are promoted and this one stays in 8 bits

Rounding errors are nearly independent: in an otherwise exact model the loss of one node is its own,
and such losses add up. In a model full of other errors the gain of one node disappears. The cosine
measures it, being finer than the agreement. The search (search.mixed_precision) takes the nodes by
sensitivity for their cost.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

from npumake.progress import track
from npumake.quant.search.mixed_precision import PromotionTrial, pareto_front, search
from npumake.quant.search.type_judge import Score


@dataclass(frozen=True)
class Objective:
    """The score to reach, and the cost limit: a number of nodes, or a share of the operations,
    which is then minimized."""

    goal: float
    metric: Literal["cosine", "agreement", "metric"] = "cosine"
    most_nodes: int | None = None
    most_operations: float | None = None


class Choice(NamedTuple):
    """Promoted nodes, the model's score with them, and their share of the operations."""

    names: tuple[str, ...]
    score: Score
    operations: float


class PromotionResult(NamedTuple):
    """The chosen nodes, the Pareto front, and whether the goal is met."""

    chosen: Choice
    front: tuple[Choice, ...]  # cheapest first, each better than all before
    suffices: bool


class Measures(Protocol):
    """Scores of one model; queries come in the same order every time."""

    @property
    def candidates(self) -> Mapping[str, int]:
        """Operations by name, in graph order."""
        ...

    def score(self, names: frozenset[str]) -> Score:
        """The score with these nodes promoted."""
        ...

    def scores_without(self, names: Sequence[str]) -> Iterator[Score]:
        """For each name, the score with all nodes promoted but this one."""
        ...


def choose_promotions(measures: Measures, objective: Objective) -> PromotionResult:
    """The cheapest promotions that reach the goal within the limits, else the best.

    A subset may score better than all nodes, by the chance of rounding. So where all together miss
    the goal, the search aims at their score, and any trial on the way counts.
    """
    tried = _TrialLog(measures, objective)
    all_names = frozenset(measures.candidates)
    if tried.measure(frozenset()) >= objective.goal:
        return tried.result()
    goal = min(objective.goal, tried.measure(all_names))
    best = _ordered(tried.scores[all_names].cosine)
    names = [*measures.candidates]
    scores = measures.scores_without(names)
    losses = {
        name: best - _ordered(next(scores).cosine) for name in track(names, "nodes", len(names))
    }
    search(losses, tried.costs, tried.measure, goal, tried.budget)
    return tried.result()


class _TrialLog:
    """The measured trials, in order."""

    def __init__(self, measures: Measures, objective: Objective) -> None:
        self.scores: dict[frozenset[str], Score] = {}
        self.costs, self.budget = _costs(measures.candidates, objective)
        self._measures = measures
        self._objective = objective

    def measure(self, names: frozenset[str]) -> float:
        if names not in self.scores:
            self.scores[names] = self._measures.score(names)
        return _ordered(float(getattr(self.scores[names], self._objective.metric)))

    def result(self) -> PromotionResult:
        tried = [
            PromotionTrial(
                names, self.measure(names), math.fsum(self.costs[name] for name in names)
            )
            for names in self.scores
        ]
        within = pareto_front(trial for trial in tried if trial.cost <= self.budget)
        enough = [trial for trial in within if trial.score >= self._objective.goal]
        best = enough[0] if enough else within[-1]
        front = tuple(self._choice(trial.names) for trial in pareto_front(tried))
        return PromotionResult(self._choice(best.names), front, bool(enough))

    def _choice(self, names: frozenset[str]) -> Choice:
        operations = self._measures.candidates
        share = sum(operations[name] for name in names) / sum(operations.values())
        in_order = tuple(name for name in operations if name in names)
        return Choice(in_order, self.scores[names], round(share, 6))


def _ordered(score: float) -> float:
    """NaN ranks below all scores."""
    return -1.0 if math.isnan(score) else score


def _costs(operations: Mapping[str, int], objective: Objective) -> tuple[dict[str, float], float]:
    """The cost of each promotion, and the budget."""
    if objective.most_operations is not None:
        total = math.fsum(operations.values())
        return {
            name: count / total for name, count in operations.items()
        }, objective.most_operations
    max_nodes = math.inf if objective.most_nodes is None else float(objective.most_nodes)
    return dict.fromkeys(operations, 1.0), max_nodes
