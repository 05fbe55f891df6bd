"""DaskDistribution: a worker that makes a node submits what its stage distributes.

While it waits, its process takes parts like any other: the task of the node leaves Dask's pool of
threads (`secede`) but keeps its resource, so that no second node starts there. A part needs the
resource of parts alone, and distributes nothing: so none waits for another, and none for ever.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from npumake import digest
from npumake.digest import Json
from npumake.distribution import LOCAL, Part
from npumake.errors import CacheError
from npumake.make.carrier import Blob, Carrier
from npumake.make.machine import part_resource
from npumake.make.parts import SLOT, Order, sharing
from npumake.progress import tell

PRIORITY = 1  # parts before nodes: a node at work ends before another one begins


@dataclass
class DaskDistribution:
    """The parts of the node of `job`, whose key is `node`; `work` makes one on any worker. The
    calling thread has SLOT."""

    work: Callable[[Json, str], Json]
    job: Blob
    node: str
    versions: Mapping[str, str]
    token: str
    carrier: Carrier
    _has_seceded: bool = field(default=False, init=False)

    @property
    def width(self) -> int:
        """The number of workers that take parts."""
        workers = self._client.scheduler_info(n_workers=-1)["workers"].values()
        return max(1, sum(self._resource in worker["resources"] for worker in workers))

    def map(
        self, function: Part, items: Sequence[bytes], shared: Mapping[str, Any]
    ) -> Iterator[bytes]:
        """A part that no worker could make is made here, and raises its error here."""
        if len(items) < 2 or self.width < 2:
            return LOCAL.map(function, items, shared)
        return self._map(function, items, shared)

    def _map(
        self, function: Part, items: Sequence[bytes], shared: Mapping[str, Any]
    ) -> Iterator[bytes]:
        name = f"{function.__module__}.{function.__qualname__}"
        orders = [Order(self.job, self.node, name, self.carrier.send_bytes(i)) for i in items]
        with sharing(self.node, name, shared):
            futures = [self._submitted(order) for order in orders]
            self._leave_pool()
            try:
                for item, future in zip(items, futures, strict=True):
                    result, reason = self._result(future)
                    if result is None:
                        result = function(item=item, **shared)
                        tell(f"note: part of a stage was made again where the stage is: {reason}")
                    yield result
            finally:
                self._client.cancel([future for future in futures if not future.done()])

    def _submitted(self, order: Order) -> Any:
        return self._client.submit(
            self.work,
            {"part": order.plain, "versions": dict(self.versions)},
            self.token,
            key=f"npumake-part-{digest.of_document(order.document)}",
            resources={self._resource: 1},
            priority=PRIORITY,
        )

    def _result(self, future: Any) -> tuple[bytes | None, str]:
        """The bytes, or why there are none. Lets this process compute meanwhile."""
        SLOT.release()
        try:
            blob = future.result()["blob"]
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001  # whatever Dask raises
            return None, str(error) or type(error).__name__
        finally:
            SLOT.acquire()
        try:
            return self.carrier.bring_bytes(Blob(**blob)), ""
        except CacheError as error:
            return None, str(error)

    def _leave_pool(self) -> None:
        """Once per task."""
        from distributed import secede  # noqa: PLC0415

        if not self._has_seceded:
            secede()
            self._has_seceded = True

    @cached_property
    def _client(self) -> Any:
        from distributed import get_client  # noqa: PLC0415  # only in a process of Dask

        return get_client()

    @cached_property
    def _resource(self) -> str:
        return part_resource(self.versions)
