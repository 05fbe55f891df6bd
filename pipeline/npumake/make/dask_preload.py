"""What a `dask worker` loads as it starts: it announces its memory limit as a resource.

PRELOAD of npumake.make.dask_client names this module. Only the process itself knows its limit: a
launcher may start it with options that `npumake worker` does not see.
"""

from __future__ import annotations

from typing import Any

from npumake.make.machine import MEMORY, PART_MEMORY


def dask_setup(worker: Any) -> None:
    """Dask calls it before the worker registers with the scheduler."""
    resources = dict.fromkeys((MEMORY, PART_MEMORY), memory_limit(worker))
    worker.state.total_resources.update(resources)
    worker.state.available_resources.update(resources)


def memory_limit(worker: Any) -> int:
    """Bytes; without a limit, those of the machine or of its container."""
    from distributed.system import MEMORY_LIMIT  # noqa: PLC0415  # only in a process of Dask

    return int(worker.memory_manager.memory_limit or MEMORY_LIMIT)
