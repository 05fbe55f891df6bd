"""Fetches the remote's artifacts of builds, in parallel, before the first stage runs.

A key needs the digests of a node's inputs, not their bytes: records are queried from input to
output. The artifacts arrive meanwhile, and while the build copies those that are there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from npumake.cache.remote.layered import LayeredStore
from npumake.digest import of_document
from npumake.errors import PipelineError
from npumake.make.build import Build
from npumake.make.node import Node, NodeKey

THREADS = 32  # they wait for responses to small requests


class _Project:
    """The nodes of a build without a known artifact, and the known digests by node."""

    def __init__(self, build: Build, selected: frozenset[str] | None) -> None:
        self._build = build
        self.digests: dict[str, str] = {}
        self._waiting = [n for n in build.plan.nodes if selected is None or n.name in selected]

    def wave(self) -> list[tuple[str, str]]:
        """(name, key) of the nodes whose inputs are known now; empty at the end."""
        keys: list[tuple[str, str]] = []
        while not keys and (ready := [node for node in self._waiting if self._is_ready(node)]):
            self._waiting = [node for node in self._waiting if node not in ready]
            keys = [*self._keys(ready)]
        return keys

    def _is_ready(self, node: Node) -> bool:
        return self.digests.keys() >= {*node.inputs.values()}

    def _keys(self, nodes: list[Node]) -> Iterator[tuple[str, str]]:
        """(name, key) of the nodes to query; the artifacts of current nodes are known."""
        for node in nodes:
            inputs = {stage: self.digests[name] for stage, name in node.inputs.items()}
            try:
                document = self._build.document(node, inputs)
            except PipelineError:  # its nodes are not built yet, or cannot be built
                continue
            if artifact := _current_artifact(self._build, node, document):
                self.digests[node.name] = artifact
            else:
                yield node.name, of_document(document)


def restore(builds: Sequence[Build], store: LayeredStore, selected: frozenset[str] | None) -> None:
    """Starts to fetch the remote's artifacts of the `selected` nodes, all by default.

    The projects are queried in parallel, so that their latencies do not add up. Raises nothing: a
    node that cannot be planned fails when it is built.
    """
    projects = [_Project(build, selected) for build in builds]
    with ThreadPoolExecutor(THREADS) as threads:
        while wave := [(p, name, key) for p in projects for name, key in p.wave()]:
            records = threads.map(store.recall, [key for _, _, key in wave])
            for (project, name, _), record in zip(wave, records, strict=True):
                if record is not None:
                    project.digests[name] = record.digest
                    store.begin(record.digest)


def _current_artifact(build: Build, node: Node, document: NodeKey) -> str | None:
    stamp = build.stamp(node)
    is_current = stamp is not None and stamp.document == document and build.intact(node, stamp)
    return stamp.digest if stamp is not None and is_current else None
