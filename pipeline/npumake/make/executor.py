"""Executor: the place where the jobs of a build run.

    local     this process, one at a time
    threads   threads of this process
    dask      a cluster, or processes of this machine

A job is a document in the shared store (npumake.make.job); an executor carries its digest and
returns its result, and knows nothing of stages.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple, Protocol

from npumake.digest import Json, plain
from npumake.make.carrier import Blob, Carrier, read
from npumake.make.job import performed
from npumake.make.memory import BuildMemory
from npumake.make.part_jobs import PartQueue
from npumake.make.parts import Order, performed_part


class Submission(NamedTuple):
    """A job of the node named `node`, which may need `memory` bytes. Equal keys run once."""

    key: str
    node: str
    job: Blob
    memory: int


class Executor(PartQueue, Protocol):
    """A result is what `performed` returns, with the name of its `worker`.

    `width` is the number of jobs to submit at a time. A future raises CacheError or StageError
    if no machine could run the job.
    """

    @property
    def carrier(self) -> Carrier: ...

    @property
    def width(self) -> int: ...

    def submit(self, work: Submission) -> Future[Json]: ...

    def close(self) -> None:
        """Ends the executor's processes. Running jobs keep their results in the store."""
        ...


class LocalExecutor:
    """`width` jobs at a time in threads of this process, which share what they import and read.

    What a stage distributes stays in its own thread: the stage runs samples in threads already.
    """

    part_width = 1

    def __init__(self, memory: BuildMemory, width: int = 1) -> None:
        self.width = width
        self.carrier = Carrier(memory.near, None)
        self._memory = memory
        self._threads = ThreadPoolExecutor(width)

    def submit(self, work: Submission) -> Future[Json]:
        return self._threads.submit(self._run, work.job)

    def submit_part(self, order: Order) -> Future[Json]:
        return self._threads.submit(self._run_part, order)

    def idle(self) -> AbstractContextManager[None]:
        return nullcontext()

    def _run(self, job: Blob) -> Json:
        return {**performed(read(job, self.carrier), self._memory, self.carrier), "worker": "local"}

    def _run_part(self, order: Order) -> Json:
        return {"blob": plain(performed_part(order, self._memory, self.carrier))}

    def close(self) -> None:
        self._threads.shutdown(wait=True, cancel_futures=True)
