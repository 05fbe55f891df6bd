"""Samples computed side by side: in order, and never more than a few of them held."""

import threading
from contextvars import ContextVar

import pytest

from npumake.engine.parallel import shared_out, side_by_side, threads

SAID = ContextVar("said", default="nothing")


@pytest.mark.parametrize("workers", ["1", "3"])
def test_results_come_in_the_order_of_the_items_on_any_number_of_threads(workers, monkeypatch):
    monkeypatch.setenv("NPUMAKE_THREADS", workers)
    assert threads() == int(workers)
    assert list(side_by_side(lambda item: item * item, iter(range(50)))) == [
        item * item for item in range(50)
    ]


def test_one_at_a_time_needs_no_other_thread():
    here = [threading.current_thread()]
    assert list(side_by_side(lambda _: threading.current_thread(), range(3), 1)) == here * 3


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


@pytest.mark.parametrize("workers", [1, 3])
def test_each_item_is_taken_by_one_worker(workers):
    taken = [[] for _ in range(workers)]
    shared_out([some.append for some in taken], iter(range(50)))
    assert sorted(item for some in taken for item in some) == list(range(50))
    assert all(some == sorted(some) for some in taken)


def test_of_the_items_that_fail_the_first_is_told_and_no_more_are_taken():
    together = threading.Barrier(2)
    taken = []

    def work(item):
        together.wait()
        raise ValueError(item)

    with pytest.raises(ValueError, match=r"^0$"):
        shared_out([work, work], (taken.append(n) or n for n in range(100)))
    assert taken == [0, 1]


def test_items_that_cannot_be_had_are_told_of():
    done = []
    with pytest.raises(ZeroDivisionError):
        shared_out([done.append, done.append], (1 // n for n in (1, 1, 0, 1)))
    assert done == [1, 1]


def test_workers_know_what_their_caller_knows():
    SAID.set("something")
    heard = []
    shared_out([lambda _: heard.append(SAID.get())] * 2, range(20))
    assert heard == ["something"] * 20
