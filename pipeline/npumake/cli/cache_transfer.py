"""npumake cache push, pull, export, import: artifacts to and from other machines."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from npumake import digest
from npumake.cli.cache_contents import size_text
from npumake.cli.projects import refuse_no_remote, selected
from npumake.cli.screen import SCREEN
from npumake.cli.selection import whole_projects
from npumake.digest import of_document
from npumake.errors import CacheError, ProjectError
from npumake.make.build import Build
from npumake.make.memory import BuildMemory, cache_directory, workspace
from npumake.progress import listening

if TYPE_CHECKING:
    from npumake.cache.remote.layered import LayeredStore


def push(arguments: argparse.Namespace) -> int:
    builds = selected(Path.cwd(), [])
    store = _layered(builds[0].memory)
    if store.far is None or store.outbox is None:
        raise ProjectError(f"nothing may be uploaded: {_obstacle(store)}")
    store.far.forgive()
    for key in _current(builds) if arguments.all else ():
        store.outbox.add(key)
    from npumake.cache.remote.outbox import FOREVER_S

    uploader = store.uploader()
    left = uploader.finish(FOREVER_S) if uploader else 0
    if uploader and left:
        raise CacheError(uploader.note or store.note or "the remote cache failed")
    print(f"{uploader.uploaded if uploader else 0} uploaded to {store.far.address}")
    return 0


def _layered(memory: BuildMemory) -> LayeredStore:
    """The store with a remote. Raises ProjectError if none is configured."""
    refuse_no_remote(memory)
    assert memory.layered is not None
    return memory.layered


def _obstacle(store: LayeredStore) -> str:
    if store.far is None:
        return "NPUMAKE_REMOTE=off"
    if store.signing is None:
        return "there is no signing key; npumake cache keygen creates one"
    return "NPUMAKE_REMOTE is `read`, or config.yaml lacks the host of the project's remote"


def _current(builds: Sequence[Build]) -> Iterator[str]:
    """The keys of current artifacts whose records are here and trusted."""
    for build in builds:
        for node in build.plan.nodes:
            stamp = build.stamp(node)
            if stamp is None or not build.intact(node, stamp):
                continue
            key = of_document(stamp.document)
            if build.memory.recall_here(key) is not None:
                yield key


def pull(arguments: argparse.Namespace) -> int:
    from npumake.make.pull import pull as pull_builds

    builds = whole_projects(arguments.projects, Path.cwd())
    store = _layered(builds[0].memory)
    if store.far is None:
        raise ProjectError("nothing may be fetched: NPUMAKE_REMOTE=off")
    SCREEN.begin("fetching")
    try:
        with listening(SCREEN.progress):
            pulled = pull_builds(builds, store)
    finally:
        SCREEN.end()
    builds[0].memory.save()
    if arguments.json:
        print(digest.text(pulled, indent=1))
    else:
        SCREEN.line(f"{pulled.fetched} fetched from {store.far.address}, {size_text(pulled.size)}")
        SCREEN.line(f"{pulled.present} were here, {len(pulled.absent)} are not there")
    failure = store.far.ledger.last_failure
    if store.note or (failure and pulled.absent):
        raise CacheError(store.note or f"the remote cache {store.far.address} failed: {failure}")
    return 0


def export(arguments: argparse.Namespace) -> int:
    from npumake.cache.archive import write_archive
    from npumake.make.packing import packed_artifacts, user_signing_key

    builds = whole_projects(arguments.projects, Path.cwd())
    memory = builds[0].memory
    signing = user_signing_key() if arguments.sign else None
    packing = packed_artifacts(builds, memory.near, signing)
    if not packing.artifacts:
        hint = "npumake build builds them, npumake cache pull fetches them"
        raise CacheError("no artifact of these projects is in the cache", hint=hint)
    SCREEN.begin("packing")
    try:
        with listening(SCREEN.progress):
            size = write_archive(arguments.file, memory.near, packing.artifacts)
    finally:
        SCREEN.end()
    memory.save()
    signed = "signed" if arguments.sign else "not signed"
    records = sum(len(packed.envelopes) for packed in packing.artifacts)
    SCREEN.line(f"{records} artifacts in {arguments.file}, {size_text(size)}, {signed}")
    if packing.absent:
        shown_names = ", ".join(packing.absent[:3])
        note = (
            f"note: {len(packing.absent)} are not in the cache: {shown_names}; npumake build first"
        )
        SCREEN.line(note, "yellow")
    return 0


def import_(arguments: argparse.Namespace) -> int:
    from npumake.make.packing import unpack

    directory = workspace(Path.cwd())
    memory = BuildMemory(cache_directory(directory), workspace=directory)
    memory.sweep()
    SCREEN.begin("unpacking")
    try:
        with listening(SCREEN.progress):
            arrivals = unpack(arguments.file, memory.near, directory, arguments.unsigned)
    finally:
        SCREEN.end()
    SCREEN.line(f"{arrivals.records} artifacts imported, {size_text(arrivals.size)}")
    if arrivals.refused:
        reason = next(iter(arrivals.refused.values()))
        hint = "trust.yaml lists the trusted keys"
        if "not signed" in reason:
            signing = "npumake cache export FILE PROJECT --sign"
            hint = f"{signing}; or add --unsigned if you trust its source"
        raise CacheError(f"{len(arrivals.refused)} refused: {reason}", str(arguments.file), hint)
    return 0
