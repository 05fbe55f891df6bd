"""A client of Dask: of a scheduler, or of processes on this machine."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from npumake.errors import StageError
from npumake.extras import install_line
from npumake.make.memory import BuildMemory

CONNECT_S = 10.0  # until a scheduler answers
# Of every process here: a stage may start processes, which daemons may not; a worker loads PRELOAD
# as it starts; and Dask's own measurements, which take 3 % of a core, are left out.
PRELOAD = "npumake.make.dask_worker"
SETTINGS: Mapping[str, Any] = {
    "distributed.worker.daemon": False,
    "distributed.worker.preload": [PRELOAD],
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "500ms",
}


def is_scheduler_file(address: str) -> bool:
    """Whether it is a path rather than tcp://HOST:PORT or HOST:PORT."""
    return "://" not in address and not address.rpartition(":")[2].isdigit()


def refuse_absent() -> None:
    """Raises StageError if Dask is not installed."""
    try:
        distribution("distributed")
    except PackageNotFoundError:
        hint = install_line("distributed")
        raise StageError("a cluster needs the package `distributed`", None, hint) from None


def _distributed() -> Any:
    """The library. Raises StageError if it is not installed."""
    refuse_absent()
    import distributed  # noqa: PLC0415  # an extra

    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    return distributed


def connected(address: str, seconds: float) -> Any:
    """The client. Raises StageError if no scheduler answers for so long."""
    library = _distributed()
    if is_scheduler_file(address) and not Path(address).is_file():
        hint = "dask scheduler --scheduler-file writes it; an address is tcp://HOST:PORT"
        raise StageError("no such scheduler file", address, hint)
    place = {"scheduler_file" if is_scheduler_file(address) else "address": address}
    try:
        return library.Client(**place, timeout=min(CONNECT_S, seconds), set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        hint = "`dask scheduler` prints its address; a scheduler file may replace it"
        message = f"no scheduler answers: {error or type(error).__name__}"
        raise StageError(message, address, hint) from None


def local_cluster(memory: BuildMemory, processes: int, resources: Mapping[str, int]) -> Any:
    """The processes share the memory of the machine."""
    library = _distributed()
    import dask  # noqa: PLC0415

    cores = os.cpu_count() or 1
    count = processes or cores
    environment = {
        "NPUMAKE_CACHE": str(memory.root.absolute()),
        "NPUMAKE_THREADS": os.environ.get("NPUMAKE_THREADS", str(max(1, cores // count))),
        "OPENBLAS_NUM_THREADS": "1",
    }
    with dask.config.set(SETTINGS), _quiet():
        return library.LocalCluster(
            n_workers=count,
            threads_per_worker=1,
            processes=True,
            dashboard_address="127.0.0.1:0",
            silence_logs=logging.CRITICAL,
            resources=dict(resources),
            env=environment,
        )


@contextmanager
def _quiet() -> Iterator[None]:
    """If a signal ends the client, multiprocessing's tracker warns of its cleanup."""
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
