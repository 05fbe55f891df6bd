"""Samples computed side by side, their results in order.

Each sample is computed by one thread, whatever the number of threads, so that how a sum would be
split over them cannot decide its last bit.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def threads() -> int:
    """How many samples are computed at once: NPUMAKE_THREADS, by default one per core."""
    return int(os.environ.get("NPUMAKE_THREADS") or os.cpu_count() or 1)


def side_by_side(
    compute: Callable[[T], R], items: Iterable[T], at_once: int | None = None
) -> Iterator[R]:
    """compute(item) for each item, in order, `at_once` at a time, by default `threads()`.

    At most twice as many results as threads are held: memory does not grow with the items.
    """
    workers = at_once or threads()
    pending: deque[Future[R]] = deque()
    with ThreadPoolExecutor(workers) as pool:
        for item in items:
            pending.append(pool.submit(compute, item))
            if len(pending) >= 2 * workers:
                yield pending.popleft().result()
        for result in pending:
            yield result.result()
