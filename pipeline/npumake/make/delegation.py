"""Delegation: an executor builds a node for the client.

The client asks its stores first, so that only missing artifacts become jobs. It fetches each
artifact into its project, with a record, as if it had built it.
"""

from __future__ import annotations

import time
from concurrent.futures import Future
from dataclasses import dataclass

from npumake import digest
from npumake.cache.store import Record
from npumake.digest import Json
from npumake.errors import CacheError, PipelineError
from npumake.make.build import Build
from npumake.make.carrier import Blob, written
from npumake.make.executor import Executor, Submission
from npumake.make.frozen import refuse_unlocked
from npumake.make.job import MachineError, error_in, packed
from npumake.make.maker import How, Outcome, recalled
from npumake.make.node import Node, NodeKey
from npumake.make.peak_memory import estimated_peak
from npumake.make.preflight import refuse_missing
from npumake.progress import tell


class WorkerBug(Exception):  # noqa: N818  # not the user's: the traceback of a worker
    """A stage raised another exception than PipelineError; the text is its traceback."""


@dataclass(frozen=True)
class Delegated:
    """A node at work elsewhere."""

    build: Build
    node: Node
    document: NodeKey
    future: Future[Json]


def delegate(build: Build, node: Node, executor: Executor) -> Outcome | Delegated:
    """The outcome of a node whose artifact a store has; else the submitted node. Raises
    PipelineError."""
    start = time.perf_counter()
    try:
        document = build.document(node, build.made_inputs(node))
        memory = build.memory
        if recalled(build, node, document, memory.store):
            seconds = time.perf_counter() - start
            return Outcome("recalled", seconds, memory.unstored, memory.note)
        refuse_missing(build, node)
        job = written(packed(build, node, document, executor.carrier), executor.carrier)
    except PipelineError as error:
        raise build.with_place(node, error) from None
    key, peak = digest.of_document(document), estimated_peak(build, node)
    future = executor.submit(Submission(key, node.name, job, peak))
    return Delegated(build, node, document, future)


def completed(work: Delegated, executor: Executor) -> Outcome:
    """Publishes the artifact in the project. Raises PipelineError and WorkerBug."""
    try:
        result = work.future.result()
    except MachineError as error:
        raise CacheError(f"no machine could build `{work.node.name}`: {error}") from None
    for message in result["messages"]:
        tell(f"{result['worker']}: {message}")
    if "bug" in result:
        raise WorkerBug(f"on {result['worker']}:\n{result['bug']}")
    build, node = work.build, work.node
    if "error" in result:
        raise error_in(result["error"], build, node)
    blob = Blob(**result["blob"])
    refuse_unlocked(build, node, work.document, blob.digest)
    executor.carrier.bring(blob, build.artifact(node))
    record = Record(digest.plain(work.document), blob.digest, blob.size, result["seconds"])
    memory = build.memory
    if (peak := result.get("peak")) is not None:
        memory.peaks.remember(node.name, peak)
    memory.store.remember(digest.of_document(work.document), record)
    build.write_stamp(node, work.document, blob.digest, flush=False)
    how: How = "recalled" if result["how"] == "recalled" else "made"
    return Outcome(how, result["seconds"], memory.unstored, memory.note, result["worker"])
