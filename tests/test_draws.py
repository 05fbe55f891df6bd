"""A run of everything takes a fair share of slow tests, and no test is out of its reach."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

import draws
from draws import SLOW_CASES, SLOW_STEP, of_a_whole_run


@dataclass(frozen=True, eq=False)
class Item:
    """What a draw reads of pytest's tests."""

    nodeid: str
    mark: pytest.Mark | None = None

    def get_closest_marker(self, name: str) -> pytest.Mark | None:
        return self.mark if self.mark and self.mark.name == name else None


def slow(name: str, count: int, **options: int) -> list[Item]:
    mark = pytest.mark.slow(**options).mark
    return [Item(f"{name}[{number}]", mark) for number in range(count)]


QUICK = [Item("a.py::quick"), *(Item(f"a.py::each[{number}]") for number in range(50))]
SINGLE = [test for number in range(7) for test in slow(f"b.py::single_{number}", 1)]
FEW = slow("c.py::few", SLOW_CASES)
MANY = slow("d.py::many", 90)
SWEEP = slow("e.py::sweep", 90, cases=36)
ALL = [*QUICK, *SINGLE, *FEW, *MANY, *SWEEP]


@pytest.fixture(autouse=True)
def _as_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(draws, "EVERY", False)


def runs(count: int) -> list[set[Item]]:
    return [set(of_a_whole_run(ALL, seed)) for seed in range(count)]  # type: ignore[arg-type]


def test_every_run_takes_all_that_is_quick() -> None:
    assert all({*QUICK} <= run for run in runs(SLOW_STEP))


def test_as_many_runs_as_its_step_take_every_slow_test() -> None:
    assert {*SINGLE, *FEW} <= set.union(*runs(SLOW_STEP))


def test_each_run_takes_its_share() -> None:
    for run in runs(SLOW_STEP):
        for slow_tests, most in (SINGLE, 7), (FEW, SLOW_CASES), (MANY, SLOW_CASES), (SWEEP, 36):
            assert len(run & {*slow_tests}) in (most // SLOW_STEP, -(-most // SLOW_STEP))


def test_no_case_of_many_is_out_of_reach() -> None:
    assert {*MANY, *SWEEP} <= set.union(*runs(600))


def test_nothing_is_left_out_where_every_test_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(draws, "EVERY", True)
    assert set(of_a_whole_run(ALL, 1)) == {*ALL}  # type: ignore[arg-type]
