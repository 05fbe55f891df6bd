"""DaskExecutor: jobs on the workers of a Dask cluster, or on processes of this machine.

The scheduler sees a key and a digest per job; all else goes through the shared store. Dask repeats
a job whose worker died or whose machine failed. An error of the project is a result, which is not
repeated.
"""

from __future__ import annotations

import logging
import math
import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from npumake.digest import Json, plain
from npumake.errors import PipelineError, ProjectError, StageError
from npumake.extras import install_line
from npumake.lifetime.temporaries import owned, temporary_name
from npumake.make import dask_worker
from npumake.make.carrier import Blob, carrier_of
from npumake.make.job import MachineError
from npumake.make.machine import difference, resource, versions
from npumake.make.memory import BuildMemory
from npumake.progress import tell

WAIT_VARIABLE, WAIT_S = "NPUMAKE_CLUSTER_WAIT", 60.0  # without a worker
CONNECT_S = 10.0  # until a scheduler answers
POLL_S = 0.5
RETRIES = 3  # of a job whose machine, scheduler or connection failed
WIDTH = 1000  # jobs at a time: the scheduler queues those that have no worker yet


class DaskExecutor:
    """`address` is that of a scheduler, or its scheduler file; without one, `processes` of this
    machine are the cluster.

    Raises StageError where no worker fits, CacheError where client and workers share no store.
    """

    width = WIDTH

    def __init__(self, memory: BuildMemory, address: str | None, processes: int = 0) -> None:
        self._versions = versions(memory)
        self._resource = resource(self._versions)
        self._token = temporary_name()
        self._waiting: dict[Future[Json], Any] = {}  # Dask's futures by ours
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
            cluster = _local_cluster(memory, processes, self._resource)
            self._resources.callback(cluster.close, timeout=5)
            address = cluster.scheduler_address
        self._client = _connected(address, self._wait_s)
        self._resources.callback(self._client.close, timeout=2)
        shares_folder = all(entry["shares_folder"] for entry in self._fitting_workers())
        self.carrier = carrier_of(memory, shares_folder)

    def submit(self, key: str, job: Blob) -> Future[Json]:
        future: Future[Json] = Future()
        order = {"job": plain(job), "versions": self._versions}
        self._submit(future, f"npumake-{key}", order, RETRIES)
        return future

    def close(self) -> None:
        self._closed.set()
        self._resources.close()

    def _submit(self, future: Future[Json], key: str, order: Json, attempts: int) -> None:
        remote = self._client.submit(
            dask_worker.work,
            order,
            self._token,
            key=key,
            resources={self._resource: 1},
            retries=RETRIES,
        )
        self._waiting[future] = remote
        remote.add_done_callback(partial(self._settle, future, key, order, attempts))

    def _settle(
        self, future: Future[Json], key: str, order: Json, attempts: int, remote: Any
    ) -> None:
        """Passes a result on. A job that a new scheduler does not know is submitted again."""
        self._waiting.pop(future, None)
        try:
            result = remote.result()
        except MachineError as error:
            _fail(future, error)
        except Exception as error:  # noqa: BLE001  # whatever Dask raises, its users' words follow
            is_lost = remote.status in ("cancelled", "lost") and not self._closed.is_set()
            if not (is_lost and attempts and self._again(future, key, order, attempts - 1)):
                _fail(future, _in_words(error))
        else:
            if not future.done():
                future.set_result(result)

    def _again(self, future: Future[Json], key: str, order: Json, attempts: int) -> bool:
        """Whether the scheduler took the job."""
        with suppress(Exception):  # no scheduler answers
            self._submit(future, key, order, attempts)
            return True
        return False

    # -- workers ---------------------------------------------------------------------------

    def _fitting_workers(self) -> list[Json]:
        """What the workers with our versions introduce themselves with; waits for the first.
        Raises StageError."""
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
        workers = self._workers().items()
        return [address for address, worker in workers if self._resource in worker["resources"]]

    def _watch(self) -> None:
        """Fails what waits once the cluster has had no worker for long."""
        since = time.monotonic()
        while not self._closed.wait(POLL_S):
            with suppress(Exception):  # the scheduler restarts
                if self._fitting():
                    since = time.monotonic()
            if time.monotonic() - since > self._wait_s:
                hint = "what was made is kept; start workers, then run it again"
                for future in list(self._waiting):
                    _fail(future, StageError("the cluster has lost its workers", None, hint))


def _wait_s() -> float:
    text = os.environ.get(WAIT_VARIABLE) or str(WAIT_S)
    with suppress(ValueError):
        if 0 < float(text) < math.inf:
            return float(text)
    raise ProjectError(f"`{text}` is no number of seconds", WAIT_VARIABLE, f"{WAIT_S:g} by default")


def _fail(future: Future[Json], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)


def _in_words(error: Exception) -> PipelineError:
    if type(error).__name__ == "KilledWorker":
        hint = "out of memory? give each worker more: npumake worker ADDRESS --memory-limit 8GiB"
        return StageError("every worker that tried to make it died", None, hint)
    hint = "what was made is kept; run it again"
    return StageError(f"the cluster failed: {type(error).__name__}: {error}", None, hint)


def is_scheduler_file(address: str) -> bool:
    """Whether it is a path rather than tcp://HOST:PORT or HOST:PORT."""
    return "://" not in address and not address.rpartition(":")[2].isdigit()


def refuse_absent() -> None:
    """Raises StageError where Dask is not installed."""
    try:
        distribution("distributed")
    except PackageNotFoundError:
        hint = install_line("distributed")
        raise StageError("a cluster needs the package `distributed`", None, hint) from None


def _distributed() -> Any:
    """The library. Raises StageError where it is not installed."""
    refuse_absent()
    import distributed  # noqa: PLC0415  # an extra

    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    return distributed


def _connected(address: str, seconds: float) -> Any:
    """The client. Raises StageError where no scheduler answers for so long."""
    library = _distributed()
    if is_scheduler_file(address) and not Path(address).is_file():
        hint = "dask scheduler --scheduler-file writes it; an address is tcp://HOST:PORT"
        raise StageError("no such scheduler file", address, hint)
    place = {"scheduler_file" if is_scheduler_file(address) else "address": address}
    try:
        return library.Client(**place, timeout=min(CONNECT_S, seconds), set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        hint = "`dask scheduler` prints its address; a scheduler file may stand in its place"
        message = f"no scheduler answers: {error or type(error).__name__}"
        raise StageError(message, address, hint) from None


def _local_cluster(memory: BuildMemory, processes: int, offered: str) -> Any:
    library = _distributed()
    import dask  # noqa: PLC0415

    cores = os.cpu_count() or 1
    count = processes or cores
    environment = {
        "NPUMAKE_CACHE": str(memory.root.absolute()),
        "NPUMAKE_THREADS": os.environ.get("NPUMAKE_THREADS", str(max(1, cores // count))),
        "OPENBLAS_NUM_THREADS": "1",
    }
    # A stage may start processes, which daemons may not.
    with dask.config.set({"distributed.worker.daemon": False}), _quiet():
        return library.LocalCluster(
            n_workers=count,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            silence_logs=logging.CRITICAL,
            resources={offered: 1},
            env=environment,
        )


@contextmanager
def _quiet() -> Iterator[None]:
    """Where a signal ends the client, multiprocessing's tracker warns of what it cleans up."""
    name = "PYTHONWARNINGS"
    before = os.environ.get(name)
    quiet = "ignore::UserWarning:multiprocessing.resource_tracker"
    os.environ[name] = f"{before},{quiet}" if before else quiet
    try:
        yield
    finally:
        os.environ.pop(name)
        if before is not None:
            os.environ[name] = before
