"""Samples computed side by side: in order, and never more than a few of them held."""

import pytest

from pipeline.engine.parallel import side_by_side, threads


@pytest.mark.parametrize("workers", ["1", "3"])
def test_results_come_in_the_order_of_the_items_on_any_number_of_threads(workers, monkeypatch):
    monkeypatch.setenv("NPUMAKE_THREADS", workers)
    assert threads() == int(workers)
    assert list(side_by_side(lambda item: item * item, iter(range(50)))) == [
        item * item for item in range(50)
    ]


def test_memory_does_not_grow_with_the_items(monkeypatch):
    monkeypatch.setenv("NPUMAKE_THREADS", "2")
    taken = []
    results = side_by_side(lambda item: item, (taken.append(n) or n for n in range(1000)))
    assert next(results) == 0
    assert len(taken) <= 4


def test_an_error_in_one_is_raised_at_its_turn():
    results = side_by_side(lambda item: 1 // item, [1, 0, 1])
    assert next(results) == 1
    with pytest.raises(ZeroDivisionError):
        next(results)
