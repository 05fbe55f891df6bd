"""Parts: what a stage distributes (npumake.distribution), as orders for other processes.

An order names the job of the stage's node, the part, and the blob of its item. A process takes the
inputs of the stage from the store and keeps them for the next part of the same node. Results are in
the store by key, so that a stage that runs again, after its worker died, finds them.
"""

from __future__ import annotations

import atexit
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, NamedTuple

from npumake import digest
from npumake.cache.store import Record
from npumake.digest import Json
from npumake.errors import CacheError
from npumake.make.carrier import Blob, Carrier, read
from npumake.make.job import JobBuild, job_build, upload_record
from npumake.make.maker import SPECIAL_VALUES, loaded
from npumake.make.memory import BuildMemory
from npumake.make.node import Node
from npumake.project.hints import hints_of
from npumake.project.reader import built
from npumake.project.sections import Sections
from npumake.stages.parameters import (
    Function,
    Parameter,
    artifact_type,
    part_called,
    part_inputs,
    part_named,
)

# Held by whatever computes in a process of a cluster: a node, or a part of one.
SLOT = threading.Lock()


class Order(NamedTuple):
    """A part of the node with the key `node`, whose job is a blob. It may need `memory` bytes."""

    job: Blob
    node: str
    part: str
    item: Blob
    memory: int

    @property
    def document(self) -> Json:
        """The key document of its result."""
        return {"stage": "part", "node": self.node, "part": self.part, "item": self.item.digest}

    @property
    def name(self) -> str:
        """For Dask: equal names run once."""
        return f"npumake-part-{digest.of_document(self.document)}"

    @property
    def plain(self) -> Json:
        return digest.plain(self._asdict())

    @classmethod
    def of(cls, document: Json) -> Order:
        blobs = {name: Blob(**document[name]) for name in ("job", "item")}
        return cls(**{**document, **blobs})


class SharedInputs:
    """The inputs of the stage of one job, in a folder of this process until `close`."""

    def __init__(self, job: Json, memory: BuildMemory, carrier: Carrier) -> None:
        self._resources = ExitStack()
        self._values: dict[str, Any] = {}
        self._build: JobBuild = self._resources.enter_context(job_build(job, memory))
        self._build.lay_out(carrier)

    def result(self, part: Function, item: bytes) -> bytes:
        node = self._build.plan.nodes[-1]
        for parameter in part_inputs(part, node.stage):
            if parameter.input not in self._values and _has(node, parameter.input):
                self._values[parameter.input] = _value(self._build, node, parameter)
        return part_called(part, node.stage, self._values, item)

    def close(self) -> None:
        self._values.clear()
        self._resources.close()


# Of this process: what its own stage shares with the parts that it takes itself, by node and part;
# and the inputs of the latest node whose stage runs elsewhere.
_own: dict[tuple[str, str], Mapping[str, Any]] = {}
_latest: dict[str, SharedInputs] = {}


@atexit.register
def _forget() -> None:
    forget_others("")


@contextmanager
def sharing(node: str, part: str, shared: Mapping[str, Any]) -> Iterator[None]:
    """Inside the block parts of this node that run in this process use `shared`."""
    _own[node, part] = shared
    try:
        yield
    finally:
        del _own[node, part]


def forget_others(node: str) -> None:
    """Frees the inputs of all nodes but this one."""
    for key in [key for key in _latest if key != node]:
        _latest.pop(key).close()


def performed_part(order: Order, memory: BuildMemory, carrier: Carrier) -> Blob:
    """The result, in the shared store. Raises PipelineError, and what the part raises."""
    document = order.document
    key = digest.of_document(document)
    if (record := memory.store.recall(key)) is not None:
        with suppress(CacheError):  # its blob was swept
            return carrier.send_bytes(carrier.bring_bytes(Blob(record.digest, record.size)))
    blob = carrier.send_bytes(_result(order, memory, carrier))
    memory.store.remember(key, Record(document, blob.digest, blob.size))
    upload_record(memory)
    return blob


def _result(order: Order, memory: BuildMemory, carrier: Carrier) -> bytes:
    part, item = part_named(order.part), carrier.bring_bytes(order.item)
    if (shared := _own.get((order.node, order.part))) is not None:
        return bytes(part(item=item, **shared))
    forget_others(order.node)
    if order.node not in _latest:
        _latest[order.node] = SharedInputs(read(order.job, carrier), memory, carrier)
    return _latest[order.node].result(part, item)


def _has(node: Node, name: str) -> bool:
    return name in node.inputs or name in node.params or name in SPECIAL_VALUES


def _value(build: JobBuild, node: Node, parameter: Parameter) -> Any:
    """The value of an input, as the stage itself has it."""
    name = parameter.input
    if name in node.inputs:
        kind = artifact_type(parameter.hint)
        return loaded(build, node.inputs[name], build.made_inputs(node)[name], kind)
    if name in SPECIAL_VALUES:
        return SPECIAL_VALUES[name](build, node)
    return built(hints_of(Sections)[name], node.params[name])
