"""The work of a Dask process for npumake: it introduces itself, and runs jobs."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

from npumake.digest import Json
from npumake.errors import PipelineError
from npumake.make.carrier import Blob, Carrier, carrier_of
from npumake.make.executor import read
from npumake.make.job import MachineError, performed
from npumake.make.machine import difference, versions
from npumake.make.memory import BuildMemory, cache_directory


def introduce(token: str) -> Json:
    """The versions of this worker, and whether the client's token is in its own cache folder."""
    return {"versions": versions(_memory()), "shares_folder": _has(token)}


def work(order: Json, token: str) -> Json:
    """Runs the job of `order`. Raises MachineError with the address of this worker."""
    from distributed import get_worker  # noqa: PLC0415  # only in a process of Dask

    name, address = str(get_worker().name), str(get_worker().address)
    try:
        return {**_work(order, token), "worker": name}
    except (MachineError, OSError, PipelineError) as error:
        raise MachineError(f"{name}: {error}", address) from None


def _work(order: Json, token: str) -> Json:
    memory = _memory()
    if other := difference(versions(memory), order["versions"]):  # the code changed meanwhile
        raise MachineError(f"has {other}")
    carrier = _carrier(_has(token))
    carrier.forgive()
    return performed(read(Blob(**order["job"]), carrier), memory, carrier)


def _has(token: str) -> bool:
    return (_memory().root / "scratch" / token).exists()


@cache
def _memory() -> BuildMemory:
    """One for all jobs of the process; its folder outlives the worker."""
    folder = Path.cwd()
    return BuildMemory(Path(os.path.abspath(cache_directory(folder))), workspace=folder)


@cache
def _carrier(shares_folder: bool) -> Carrier:
    return carrier_of(_memory(), shares_folder)
