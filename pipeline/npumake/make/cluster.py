"""DaskExecutor: jobs on the workers of a Dask cluster, or on processes of this machine.

The scheduler sees a key, a digest and a memory estimate per job; all else goes through the shared
store. Dask repeats a job whose worker died. If a machine fails, the job goes to another one. An
error of the project is a result and is not repeated.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from npumake.digest import Json, plain
from npumake.errors import PipelineError, ProjectError, StageError
from npumake.lifetime.temporaries import owned, temporary_name
from npumake.make import dask_worker
from npumake.make.carrier import carrier_of
from npumake.make.dask_client import connected, local_cluster
from npumake.make.dask_parts import workers_with
from npumake.make.executor import Submission
from npumake.make.job import MachineError
from npumake.make.machine import (
    MEMORY,
    PART_MEMORY,
    difference,
    offered,
    part_resource,
    resource,
    versions,
)
from npumake.make.memory import BuildMemory
from npumake.make.parts import Order
from npumake.progress import tell

WAIT_VARIABLE, WAIT_S = "NPUMAKE_CLUSTER_WAIT", 60.0  # without a worker
POLL_S = 0.5
RETRIES = 3  # of a job whose machine, scheduler or connection failed
GIB = 1 << 30
WIDTH = 1000  # jobs at a time: the scheduler queues those that have no worker yet


@dataclass
class _Task:
    """A job or part at work. It asks for one of the resource `slot` and `memory` bytes of the
    resource `pool`. `avoided` are the addresses of workers whose machine failed at it."""

    key: str
    work: Callable[[Json, str], Json]
    order: Json
    slot: str
    pool: str
    memory: int
    request: int = 0  # bytes asked for, as far as a worker has them
    attempts: int = 0
    avoided: set[str] = field(default_factory=set)
    future: Future[Json] = field(default_factory=Future)


class DaskExecutor:
    """`address` is that of a scheduler, or its scheduler file; without one, `processes` of this
    machine are the cluster.

    Raises StageError if no worker fits, CacheError if client and workers share no store.
    """

    width = WIDTH

    def __init__(self, memory: BuildMemory, address: str | None, processes: int = 0) -> None:
        self._versions = versions(memory)
        self._resource = resource(self._versions)
        self._token = temporary_name()
        self._waiting: dict[Future[Json], tuple[_Task, Any]] = {}  # with Dask's future, by ours
        self._largest = 0  # bytes of the worker with most memory
        self._closed = threading.Event()
        self._wait_s = _wait_s()
        self._resources = ExitStack()
        try:
            self._open(memory, address, processes)
        except BaseException:
            self.close()
            raise
        threading.Thread(target=self._watch, daemon=True).start()

    def _open(self, memory: BuildMemory, address: str | None, processes: int) -> None:
        mark = memory.root / "scratch" / self._token
        self._resources.enter_context(owned(mark))
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.touch()
        if address is None:
            cluster = local_cluster(memory, processes, offered(self._versions))
            self._resources.callback(cluster.close, timeout=5)
            address = cluster.scheduler_address
        self._client = connected(address, self._wait_s)
        self._resources.callback(self._client.close, timeout=2)
        shares_folder = all(entry["shares_folder"] for entry in self._fitting_workers())
        self.carrier = carrier_of(memory, shares_folder)

    def submit(self, work: Submission) -> Future[Json]:
        order = {
            "job": plain(work.job),
            "memory": work.memory,
            "versions": self._versions,
        }
        if work.memory > self._largest:
            tell(_shortage(work, self._largest))
        name, step = f"npumake-{work.key}", dask_worker.work
        return self._begun(_Task(name, step, order, self._resource, MEMORY, work.memory))

    @property
    def part_width(self) -> int:
        return workers_with(part_resource(self._versions), self._client)

    def submit_part(self, order: Order) -> Future[Json]:
        document = {"part": order.plain, "versions": self._versions}
        slot, step = part_resource(self._versions), dask_worker.work_part
        return self._begun(_Task(order.name, step, document, slot, PART_MEMORY, order.memory))

    def idle(self) -> AbstractContextManager[None]:
        return nullcontext()

    def close(self) -> None:
        self._closed.set()
        self._resources.close()

    def _begun(self, task: _Task) -> Future[Json]:
        self._submit(task)
        return task.future

    def _submit(self, task: _Task) -> None:
        fitting = self._fitting() if task.avoided else []
        others = [name for name in fitting if name not in task.avoided]
        task.request = min(task.memory, self._largest)
        remote = self._client.submit(
            task.work,
            task.order,
            self._token,
            key=f"{task.key}-{task.attempts}" if task.attempts else task.key,
            resources={task.slot: 1, task.pool: task.request},
            workers=others or None,
            allow_other_workers=bool(others),  # if none of these is left
        )
        self._waiting[task.future] = task, remote
        remote.add_done_callback(partial(self._settle, task))

    def _settle(self, task: _Task, remote: Any) -> None:
        """Passes a result on. A job is submitted again if its machine failed, to another one, and
        if a new scheduler does not know it."""
        self._waiting.pop(task.future, None)
        try:
            result = remote.result()
        except MachineError as error:
            task.avoided.add(error.worker)
            if not self._again(task):
                _fail(task.future, error)
        except Exception as error:  # noqa: BLE001  # any error of Dask becomes one in our words
            is_lost = remote.status in ("cancelled", "lost")
            if not (is_lost and self._again(task)):
                _fail(task.future, _in_words(error))
        else:
            if not task.future.done():
                task.future.set_result(result)

    def _again(self, task: _Task) -> bool:
        """Whether the scheduler took the job once more."""
        task.attempts += 1
        if self._closed.is_set() or task.attempts > RETRIES:
            return False
        with suppress(Exception):  # no scheduler answers
            self._submit(task)
            return True
        return False

    # -- workers ---------------------------------------------------------------------------

    def _fitting_workers(self) -> list[Json]:
        """The introductions of the workers with our versions; waits for the first. Raises
        StageError."""
        end = time.monotonic() + self._wait_s
        while True:
            reasons = self._refused()
            if fitting := self._introduced(self._fitting()):
                for reason in reasons:
                    tell(f"note: a worker gets no node: {reason}")
                return [entry for entry in fitting.values() if isinstance(entry, dict)]
            if reasons:
                raise StageError("no worker of the cluster fits", None, "; ".join(reasons))
            if time.monotonic() > end:
                raise StageError(
                    "the cluster has no worker",
                    self._client.scheduler.address,
                    f"start one: npumake worker {self._client.scheduler.address}",
                )
            time.sleep(POLL_S)

    def _refused(self) -> list[str]:
        """Why a worker gets no job, a line for each."""
        others = [name for name in self._workers() if name not in self._fitting()]
        lines = []
        for address, entry in self._introduced(others).items():
            if not isinstance(entry, dict):
                lines.append(f"{address} cannot run this npumake: {entry}")
            elif other := difference(entry["versions"], self._versions):
                lines.append(f"{address} has {other}")
            else:
                lines.append(f"{address} was not started by `npumake worker`")
        return lines

    def _introduced(self, addresses: list[str]) -> dict[str, Any]:
        """An introduction, or an exception, by the worker's address."""
        if not addresses:
            return {}
        run = self._client.run
        answers = run(dask_worker.introduce, self._token, workers=addresses, on_error="return")
        return dict(answers)

    def _workers(self) -> dict[str, Any]:
        return dict(self._client.scheduler_info(n_workers=-1)["workers"])

    def _fitting(self) -> list[str]:
        resources = {name: worker["resources"] for name, worker in self._workers().items()}
        fitting = [name for name, has in resources.items() if {self._resource, MEMORY} <= {*has}]
        self._largest = max((int(resources[name][MEMORY]) for name in fitting), default=0)
        return fitting

    def _watch(self) -> None:
        """After a long time without a worker waiting jobs fail; without one that is large enough
        they are submitted again, for the largest."""
        present = large = time.monotonic()
        while not self._closed.wait(POLL_S):
            with suppress(Exception):  # the scheduler restarts
                if self._fitting():
                    present = time.monotonic()
                if not self._too_large():
                    large = time.monotonic()
            now = time.monotonic()
            if now - present > self._wait_s:
                hint = "finished artifacts are kept; start workers, then run it again"
                for future in list(self._waiting):
                    _fail(future, StageError("the cluster has lost its workers", None, hint))
            elif now - large > self._wait_s:
                for remote in self._too_large():
                    remote.cancel()  # `_settle` submits it again

    def _too_large(self) -> list[Any]:
        """Dask's futures of the tasks that ask for more memory than a worker has."""
        waiting = [*self._waiting.values()]
        return [remote for task, remote in waiting if task.request > self._largest]


def _shortage(work: Submission, largest: int) -> str:
    need, limit = f"{work.memory / GIB:.1f} GiB", f"{largest / GIB:.1f} GiB"
    place = f"may need {need} of memory and runs on the largest worker, with {limit}"
    return f"note: `{work.node}` {place}; for more: npumake worker ADDRESS --memory-limit 16GiB"


def _wait_s() -> float:
    text = os.environ.get(WAIT_VARIABLE) or str(WAIT_S)
    with suppress(ValueError):
        if 0 < float(text) < math.inf:
            return float(text)
    raise ProjectError(
        f"`{text}` is not a number of seconds", WAIT_VARIABLE, f"{WAIT_S:g} by default"
    )


def _fail(future: Future[Json], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)


def _in_words(error: Exception) -> PipelineError:
    if type(error).__name__ == "KilledWorker":
        hint = "out of memory? give each worker more: npumake worker ADDRESS --memory-limit 8GiB"
        return StageError("every worker that ran it died", None, hint)
    hint = "finished artifacts are kept; run it again"
    return StageError(f"the cluster failed: {type(error).__name__}: {error}", None, hint)
