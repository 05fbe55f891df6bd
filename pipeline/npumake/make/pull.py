"""Fetches all that the remote has for some builds into the near store, however long it takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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
    digests: dict[str, str | None] = {}  # by key

    def digest_of(key: str) -> str | None:
        if key not in digests:
            record = store.recall(key)
            is_here = record and store.arrived(record.digest)
            digests[key] = record.digest if record and is_here else None
            if record and is_here:
                sizes[record.digest] = record.size
        return digests[key]

    restore(builds, store, None)
    absent: list[str] = []
    for build in builds:
        keys = node_keys(build, digest_of)
        absent += [name for name, key in keys.wanted.items() if digests[key] is None]
        absent += keys.unknown
    fetched = {digest: size for digest, size in sizes.items() if digest not in before}
    present = len(sizes) - len(fetched)
    return Pulled(len(fetched), sum(fetched.values()), present, tuple(absent))
