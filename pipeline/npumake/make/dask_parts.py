"""WorkerQueue: a worker that makes a node orders the parts of its stage from all workers.

While it waits, its process takes parts like any other: the task of the node leaves Dask's pool of
threads (`secede`) but keeps its resource, so that no second node starts there. A part needs the
resource of parts alone, and distributes nothing: so none waits for another, and none for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from npumake.digest import Json
from npumake.make.machine import PART_MEMORY, part_resource
from npumake.make.parts import SLOT, Order

PRIORITY = 1  # parts before nodes: a node at work ends before another one begins


@dataclass
class WorkerQueue:
    """`work` makes a part on any worker. The calling thread has SLOT."""

    work: Callable[[Json, str], Json]
    versions: Mapping[str, str]
    token: str
    _has_seceded: bool = field(default=False, init=False)

    @property
    def part_width(self) -> int:
        return workers_with(self._resource, self._client)

    def submit_part(self, order: Order) -> Any:
        return self._client.submit(
            self.work,
            {"part": order.plain, "versions": dict(self.versions)},
            self.token,
            key=order.name,
            resources={self._resource: 1, PART_MEMORY: order.memory},
            priority=PRIORITY,
        )

    @contextmanager
    def idle(self) -> Iterator[None]:
        from distributed import secede  # noqa: PLC0415

        if not self._has_seceded:
            secede()  # type: ignore[no-untyped-call]
            self._has_seceded = True
        SLOT.release()
        try:
            yield
        finally:
            SLOT.acquire()

    @cached_property
    def _client(self) -> Any:
        from distributed import get_client  # noqa: PLC0415  # only in a process of Dask

        return get_client()

    @cached_property
    def _resource(self) -> str:
        return part_resource(self.versions)


def workers_with(resource: str, client: Any) -> int:
    """The number of workers that have the resource."""
    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    return sum(resource in worker["resources"] for worker in workers)
