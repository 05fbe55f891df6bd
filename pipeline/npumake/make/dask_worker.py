"""The work of a Dask process for npumake: it introduces itself, and runs jobs and parts of jobs.

A `dask worker` loads this module as it starts (PRELOAD of npumake.make.dask_client). Only the
process itself knows its memory limit: a launcher may pass options that `npumake worker` does not
see.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from npumake import digest
from npumake.digest import Json
from npumake.distribution import distributing
from npumake.errors import PipelineError
from npumake.make.carrier import Blob, Carrier, carrier_of, read
from npumake.make.dask_parts import WorkerQueue
from npumake.make.job import MachineError, performed
from npumake.make.machine import MEMORY, PART_MEMORY, difference, versions
from npumake.make.memory import BuildMemory, cache_directory
from npumake.make.part_jobs import PartJobs
from npumake.make.parts import SLOT, Order, forget_others, performed_part
from npumake.make.peak_memory import Peak
from npumake.make.present_node import PRESENT


def dask_setup(worker: Any) -> None:
    """Announces the memory limit. Dask calls it before the worker registers with the scheduler."""
    resources = dict.fromkeys((MEMORY, PART_MEMORY), _memory_limit(worker))
    worker.state.total_resources.update(resources)
    worker.state.available_resources.update(resources)


def _memory_limit(worker: Any) -> int:
    """Bytes; without a limit, those of the machine or of its container."""
    from distributed.system import MEMORY_LIMIT  # noqa: PLC0415  # only in a process of Dask

    return int(worker.memory_manager.memory_limit or MEMORY_LIMIT)


def introduce(token: str) -> Json:
    """The versions of this worker, and whether the client's token is in its own cache folder."""
    return {"versions": versions(_memory()), "shares_folder": _has(token)}


def work(order: Json, token: str) -> Json:
    """Runs the job of `order`. Raises MachineError with the address of this worker."""
    return _on_this_machine(_work, order, token)


def work_part(order: Json, token: str) -> Json:
    """Runs the part of `order`. Raises MachineError; the stage then runs it itself, and raises the
    errors of the project."""
    return _on_this_machine(_work_part, order, token)


def _on_this_machine(step: Callable[[Json, str], Json], order: Json, token: str) -> Json:
    from distributed import get_worker  # noqa: PLC0415  # only in a process of Dask

    name, address = str(get_worker().name), str(get_worker().address)
    try:
        with SLOT:
            return {**step(order, token), "worker": name}
    except (MachineError, OSError, PipelineError) as error:
        raise MachineError(f"{name}: {error}", address) from None


def _work(order: Json, token: str) -> Json:
    memory, carrier = _equal_memory(order), _ready_carrier(token)
    forget_others("")
    blob = Blob(**order["job"])
    job = read(blob, carrier)
    key, need = digest.of_document(job["document"]), min(order["memory"], _limit())
    queue = WorkerQueue(work_part, order["versions"], token)
    parts = PartJobs(blob, key, need, carrier, queue)
    with PRESENT.begun(key, job["nodes"][-1]["name"], need), distributing(parts):
        peak = Peak()
        result = performed(job, memory, carrier)
        with suppress(PipelineError, OSError):  # for the next process of this folder
            memory.code.save()
        is_alone = result.get("how") == "made" and not PRESENT.has_company
        return {**result, "peak": peak.size if is_alone else None}


def _work_part(order: Json, token: str) -> Json:
    memory, carrier = _equal_memory(order), _ready_carrier(token)
    part = Order.of(order["part"])
    PRESENT.admit(part, _limit())
    return {"blob": digest.plain(performed_part(part, memory, carrier))}


def _limit() -> int:
    from distributed import get_worker  # noqa: PLC0415  # only in a process of Dask

    return _memory_limit(get_worker())


def _equal_memory(order: Json) -> BuildMemory:
    """Raises MachineError where the code changed meanwhile."""
    memory = _memory()
    if other := difference(versions(memory), order["versions"]):
        raise MachineError(f"has {other}")
    return memory


def _ready_carrier(token: str) -> Carrier:
    carrier = _carrier(_has(token))
    carrier.forgive()
    return carrier


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
