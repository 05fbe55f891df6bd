"""What the remote has of a build, fetched side by side before the first stage runs.

A key needs the digests of a node's inputs, not their bytes: so records are asked for from input to
output, and artifacts arrive meanwhile. What is left out here is fetched when its node is made.
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
    """Have the near store hold what the remote has for the `selected` nodes, all by default.

    Raises nothing: a node that cannot be planned says so when it is made.
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
    """(name, key) of the nodes to be asked for; of a current one `digests` learns what it made."""
    for node in wave:
        inputs = {stage: digests[name] for stage, name in node.inputs.items()}
        try:
            document = build.document(node, inputs)
        except PipelineError:  # it tells of nodes that are not made yet, or cannot be made
            continue
        if artifact := _made(build, node, document):
            digests[node.name] = artifact
        else:
            yield node.name, of_document(document)


def _made(build: Build, node: Node, document: NodeKey) -> str | None:
    stamp = build.stamp(node)
    is_current = stamp is not None and stamp.document == document and build.intact(node, stamp)
    return stamp.digest if stamp is not None and is_current else None
