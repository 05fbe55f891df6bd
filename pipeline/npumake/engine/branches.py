"""Turns of a program that do not wait for each other, taken at the same time.

A turn waits for those before it that make what it reads. Whatever the number of threads and
whichever is done first, each turn reads the same arrays, so that the results are the same bits.
Of several turns that fail, the first in order is told, as if they had been taken one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import NamedTuple

import numpy as np

Values = Mapping[str, np.ndarray]


class ParallelTurn(NamedTuple):
    """The arrays it reads, by name → the arrays it makes, by name."""

    reads: tuple[str, ...]
    makes: tuple[str, ...]
    run: Callable[[Values], Values]


class Branches:
    """Turns in an order in which they can be taken."""

    def __init__(self, turns: Sequence[ParallelTurn], threads: int) -> None:
        self.turns = turns
        makers = {name: index for index, turn in enumerate(turns) for name in turn.makes}
        self._behind = [{makers[name] for name in turn.reads if name in makers} for turn in turns]
        chain = all(at - 1 in behind for at, behind in enumerate(self._behind) if at)
        self._pool = None if chain or threads == 1 else ThreadPoolExecutor(threads)

    def run(self, feeds: Values) -> dict[str, np.ndarray]:
        """All that is fed and made. Raises what a turn raises."""
        values = dict(feeds)
        if self._pool is not None:
            return self._side_by_side(self._pool, values)
        for turn in self.turns:
            values.update(turn.run(_read(turn, values)))
        return values

    def _side_by_side(
        self, pool: ThreadPoolExecutor, values: dict[str, np.ndarray]
    ) -> dict[str, np.ndarray]:
        left = dict(enumerate(self._behind))
        done: set[int] = set()
        failed: dict[int, BaseException] = {}
        running: dict[Future[Values], int] = {}
        while left or running:
            # Behind a failure nothing more begins; before it, what could fail earlier does.
            last = min(failed, default=len(self.turns))
            for at in [at for at, behind in left.items() if at < last and behind <= done]:
                del left[at]
                turn = self.turns[at]
                running[pool.submit(turn.run, _read(turn, values))] = at
            if not running:
                break
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                at = running.pop(future)
                if error := future.exception():
                    failed[at] = error
                    continue
                values.update(future.result())
                done.add(at)
        if failed:
            raise failed[min(failed)]
        return values


def _read(turn: ParallelTurn, values: Values) -> Values:
    return {name: values[name] for name in turn.reads}
