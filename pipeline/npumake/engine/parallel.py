"""Samples computed side by side, their results in order.

Each sample is computed by one thread, whatever the number of threads, so that how a sum would be
split over them cannot decide its last bit.
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

# Held by a thread that computes with NumPy for long while others run onnxruntime. NumPy gives up
# Python's lock in every call, and takes it again: where calls take microseconds, two threads of
# them take twice as long as one.
NUMPY = threading.Lock()


def threads() -> int:
    """How many samples are computed at once: NPUMAKE_THREADS, PARALLEL_PROCESS_NUM as the scripts
    of Horizon and D-Robotics read it, by default one per core."""
    variable = os.environ.get("PARALLEL_PROCESS_NUM", "").strip()
    vendors = int(variable) if variable.isdecimal() else 0
    return int(os.environ.get("NPUMAKE_THREADS") or vendors or os.cpu_count() or 1)


def side_by_side(
    compute: Callable[[T], R], items: Iterable[T], at_once: int | None = None
) -> Iterator[R]:
    """compute(item) for each item, in order, `at_once` at a time, by default `threads()`.

    At most twice as many results as threads are held: memory does not grow with the items. One at
    a time needs no other thread.
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
    """Has some worker take each item, in a thread of its own: the next one when it is done with its
    last. So no thread waits for another to hand it something.

    Raises what the first item raises that a worker fails with; none is taken after that.
    """
    numbered = enumerate(items)
    taking = threading.Lock()
    failures: dict[float, BaseException] = {}

    def work(worker: Callable[[T], object]) -> None:
        number = math.inf
        try:
            while not failures:
                number = math.inf  # none of the items may be there to take
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
