"""Computes samples in parallel and returns the results in order.

One thread computes each sample, so the number of threads cannot change the last bit of a sum.
"""

from __future__ import annotations

import math
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

# Held by a thread in a long NumPy computation while others run onnxruntime. NumPy releases and
# takes the GIL in every call: two such threads with microsecond calls take twice as long as one.
NUMPY = threading.Lock()


def threads() -> int:
    """Number of parallel samples: NPUMAKE_THREADS, else PARALLEL_PROCESS_NUM (as in the scripts of
    Horizon and D-Robotics), else one per core."""
    variable = os.environ.get("PARALLEL_PROCESS_NUM", "").strip()
    vendors = int(variable) if variable.isdecimal() else 0
    return int(os.environ.get("NPUMAKE_THREADS") or vendors or os.cpu_count() or 1)


def side_by_side(
    compute: Callable[[T], R], items: Iterable[T], at_once: int | None = None
) -> Iterator[R]:
    """compute(item) for each item in order, `at_once` in parallel (default: `threads()`).

    At most twice as many results as threads are in memory. `at_once` = 1 uses the calling thread.
    """
    workers = at_once or threads()
    if workers == 1:
        yield from map(compute, items)
        return
    pending: deque[Future[R]] = deque()
    with ThreadPoolExecutor(workers) as pool:
        for item in items:
            pending.append(pool.submit(compute, item))
            if len(pending) >= 2 * workers:
                yield pending.popleft().result()
        for result in pending:
            yield result.result()


def shared_out(workers: Sequence[Callable[[T], object]], items: Iterable[T]) -> None:
    """Distributes items over workers, one thread each; a worker takes the next item when it is
    free.

    Raises the error of the first failing item; no item is started after a failure.
    """
    numbered = enumerate(items)
    taking = threading.Lock()
    failures: dict[float, BaseException] = {}

    def work(worker: Callable[[T], object]) -> None:
        number = math.inf
        try:
            while not failures:
                number = math.inf  # the iterator itself may fail
                with taking:
                    pair = next(numbered, None)
                if pair is None:
                    return
                number, item = pair
                worker(item)
        except BaseException as error:
            failures[number] = error
            raise

    try:
        with ThreadPoolExecutor(len(workers)) as pool:
            for worker in workers[1:]:
                pool.submit(copy_context().run, work, worker)
            work(workers[0])
    finally:
        if failures:
            raise failures[min(failures)]
