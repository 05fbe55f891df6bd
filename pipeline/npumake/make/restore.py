"""Fetches the remote's artifacts of a build, in parallel, before the first stage runs.

A key needs the digests of a node's inputs, not their bytes: records are queried from input to
output, and artifacts arrive meanwhile. The rest is fetched when its node is made.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

from npumake.cache.remote.layered import LayeredStore
from npumake.cache.store import Record
from npumake.digest import of_document
from npumake.errors import PipelineError
from npumake.make.build import Build
from npumake.make.node import Node, NodeKey

THREADS = 8


def restore(build: Build, store: LayeredStore, selected: frozenset[str] | None) -> None:
    """Fetches the remote's artifacts of the `selected` nodes, all by default, into the near store.

    Raises nothing: a node that cannot be planned fails when it is made.
    """
    digests: dict[str, str] = {}
    waiting = [n for n in build.plan.nodes if selected is None or n.name in selected]
    with ThreadPoolExecutor(THREADS) as threads:
        arriving: list[Future[bool]] = []
        while wave := [node for node in waiting if digests.keys() >= {*node.inputs.values()}]:
            waiting = [node for node in waiting if node not in wave]
            keys = dict(_keys(build, wave, digests))
            records = threads.map(store.recall, keys.values())
            for name, record in zip(keys, records, strict=True):
                if record is not None:
                    digests[name] = record.digest
                    arriving += _fetched(threads, store, record)
        for future in arriving:
            future.result()


def _fetched(
    threads: ThreadPoolExecutor, store: LayeredStore, record: Record
) -> Iterator[Future[bool]]:
    if not store.near.has(record.digest):
        yield threads.submit(store.bring, record.digest)


def _keys(build: Build, wave: list[Node], digests: dict[str, str]) -> Iterator[tuple[str, str]]:
    """(name, key) of the nodes to query; `digests` gets the artifacts of current nodes."""
    for node in wave:
        inputs = {stage: digests[name] for stage, name in node.inputs.items()}
        try:
            document = build.document(node, inputs)
        except PipelineError:  # its nodes are not made yet, or cannot be made
            continue
        if artifact := _current_artifact(build, node, document):
            digests[node.name] = artifact
        else:
            yield node.name, of_document(document)


def _current_artifact(build: Build, node: Node, document: NodeKey) -> str | None:
    stamp = build.stamp(node)
    is_current = stamp is not None and stamp.document == document and build.intact(node, stamp)
    return stamp.digest if stamp is not None and is_current else None
