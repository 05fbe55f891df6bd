"""Where calls run changes no result: in order, each once, and with the errors of the function."""

from __future__ import annotations

import pytest

from npumake.distribution import (
    Distributor,
    LocalDistributor,
    ThreadDistributor,
    distributed,
    distributing,
    width,
)

PLACES = [LocalDistributor(), ThreadDistributor(1), ThreadDistributor(3)]
ITEMS = [str(number).encode() for number in range(10)]


def doubled(item: bytes, suffix: bytes) -> bytes:
    if item == b"bad":
        raise ValueError("a bad item")
    return item * 2 + suffix


@pytest.mark.parametrize("place", PLACES)
def test_results_come_in_the_order_of_the_items(place: Distributor) -> None:
    with distributing(place):
        results = list(distributed(doubled, ITEMS, suffix=b"!"))
        assert width() == place.width
    assert results == [item * 2 + b"!" for item in ITEMS]
    assert width() == 1


@pytest.mark.parametrize("place", PLACES)
def test_an_error_is_raised_for_the_item_that_has_it(place: Distributor) -> None:
    with distributing(place):
        results = distributed(doubled, [b"1", b"bad", b"2"], suffix=b"")
        assert next(results) == b"11"
        with pytest.raises(ValueError, match="a bad item"):
            next(results)


def test_in_one_thread_a_call_waits_until_its_result_is_asked_for() -> None:
    results = distributed(doubled, [b"1", b"bad"], suffix=b"")
    assert next(results) == b"11"  # a search that ends here pays for no other item


def test_a_distribution_ends_with_its_block_whatever_is_raised() -> None:
    with pytest.raises(KeyError), distributing(ThreadDistributor(4)):
        raise KeyError
    assert width() == 1
