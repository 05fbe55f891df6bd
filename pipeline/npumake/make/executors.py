"""EXECUTORS: by name, how a build opens the executor of its nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from npumake.make.cluster import DaskExecutor
from npumake.make.executor import Executor, LocalExecutor
from npumake.make.memory import BuildMemory

# Each takes the scheduler's address, if any, and the number of processes, 0 for the cores.
Opening = Callable[[BuildMemory, str | None, int], Executor]

EXECUTORS: Mapping[str, Opening] = {
    "local": lambda memory, _address, _processes: LocalExecutor(memory),
    "dask": DaskExecutor,
}
