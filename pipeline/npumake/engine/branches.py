"""Runs independent steps of a program in parallel.

A step waits for the earlier steps that produce its inputs. Every step reads the same arrays at any
number of threads, so the results have the same bits. If several steps fail, the first one in
program order is reported, as in a sequential run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import NamedTuple

import numpy as np

Values = Mapping[str, np.ndarray]


class ParallelTurn(NamedTuple):
    """One step: input names, output names, and the function from arrays to arrays."""

    reads: tuple[str, ...]
    makes: tuple[str, ...]
    run: Callable[[Values], Values]


class Branches:
    """Steps in a valid execution order."""

    def __init__(self, turns: Sequence[ParallelTurn], threads: int) -> None:
        self.turns = turns
        makers = {name: index for index, turn in enumerate(turns) for name in turn.makes}
        self._behind = [{makers[name] for name in turn.reads if name in makers} for turn in turns]
        chain = all(at - 1 in behind for at, behind in enumerate(self._behind) if at)
        self._pool = None if chain or threads == 1 else ThreadPoolExecutor(threads)

    def run(self, feeds: Values) -> dict[str, np.ndarray]:
        """All inputs and results by name. Raises the exceptions of a step."""
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
        visited: set[int] = set()
        failed: dict[int, BaseException] = {}
        running: dict[Future[Values], int] = {}
        while left or running:
            # After a failure no later step starts; earlier steps may still fail first.
            last = min(failed, default=len(self.turns))
            for at in [at for at, behind in left.items() if at < last and behind <= visited]:
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
                visited.add(at)
        if failed:
            raise failed[min(failed)]
        return values


def _read(turn: ParallelTurn, values: Values) -> Values:
    return {name: values[name] for name in turn.reads}
