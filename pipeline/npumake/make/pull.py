"""Fetches all artifacts of some builds from the remote into the near store, without a time
limit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from npumake.cache.inventory import inventory
from npumake.cache.remote.layered import LayeredStore
from npumake.cache.remote.outbox import FOREVER_S
from npumake.make.build import Build
from npumake.make.restore import restore
from npumake.make.roots import node_keys


@dataclass(frozen=True)
class Pulled:
    """Numbers of artifacts, the fetched bytes, and the names of nodes without an artifact."""

    fetched: int
    size: int
    present: int
    absent: tuple[str, ...]


def pull(builds: Sequence[Build], store: LayeredStore) -> Pulled:
    """Nothing runs, and nothing is written into the projects."""
    before = inventory(store.near).blobs.keys()
    store.fetches_all = True
    if store.far is not None:
        store.far.forgive(FOREVER_S)
    sizes: dict[str, int] = {}

    @cache
    def digest_of(key: str) -> str | None:
        record = store.recall(key)
        if record is None or not store.arrived(record.digest):
            return None
        sizes[record.digest] = record.size
        return record.digest

    restore(builds, store, None)
    absent: list[str] = []
    for build in builds:
        keys = node_keys(build, digest_of)
        absent += [name for name, key in keys.by_node.items() if digest_of(key) is None]
        absent += keys.unknown
    fetched = {digest: size for digest, size in sizes.items() if digest not in before}
    present = len(sizes) - len(fetched)
    return Pulled(len(fetched), sum(fetched.values()), present, tuple(absent))
