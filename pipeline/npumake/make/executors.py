"""EXECUTORS: by name, how a build opens the executor of its nodes."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import AbstractContextManager

from npumake.digest import Json
from npumake.errors import PipelineError
from npumake.make.carrier import Carrier
from npumake.make.cluster import DaskExecutor
from npumake.make.executor import Executor, LocalExecutor, Submission
from npumake.make.memory import BuildMemory
from npumake.make.part_jobs import PartFuture
from npumake.make.parts import Order

# Each takes the scheduler's address, if any, and the number of threads or processes, 0: the cores.
Opening = Callable[[BuildMemory, str | None, int], Executor]

EXECUTORS: Mapping[str, Opening] = {
    "local": lambda memory, _address, _count: LocalExecutor(memory),
    "threads": lambda memory, _address, count: LocalExecutor(memory, count or os.cpu_count() or 1),
    "dask": DaskExecutor,
}


class LateExecutor:
    """An executor that is opened for the first job: a build with nothing to do needs none.

    An executor that cannot be opened raises the same error for every job.
    """

    def __init__(self, opening: Callable[[], Executor]) -> None:
        self._opening = opening
        self._opened: Executor | None = None
        self._error: PipelineError | None = None

    @property
    def width(self) -> int:
        return self._opened.width if self._opened else 1

    @property
    def carrier(self) -> Carrier:
        return self._executor.carrier

    def submit(self, work: Submission) -> Future[Json]:
        return self._executor.submit(work)

    @property
    def part_width(self) -> int:
        return self._executor.part_width

    def submit_part(self, order: Order) -> PartFuture:
        return self._executor.submit_part(order)

    def idle(self) -> AbstractContextManager[None]:
        return self._executor.idle()

    def close(self) -> None:
        if self._opened:
            self._opened.close()

    @property
    def _executor(self) -> Executor:
        """Raises PipelineError."""
        if self._error is not None:
            raise self._error
        if self._opened is None:
            try:
                self._opened = self._opening()
            except PipelineError as error:
                self._error = error
                raise
        return self._opened
