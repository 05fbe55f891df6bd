"""Packs the artifacts of projects for another machine, and unpacks received ones."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from npumake.cache.archive import PackedEntry
from npumake.cache.inventory import CacheEntry, inventory
from npumake.cache.local import LocalStore
from npumake.cache.remote.envelope import Envelope, envelope_file, packed, unpacked
from npumake.cache.remote.keys import SigningKey
from npumake.cache.remote.trust import TrustVerdict
from npumake.cache.store import Record
from npumake.cache.sweep import entries_in_use
from npumake.cache.unpacking import Arrivals, read_archive
from npumake.errors import ProjectError
from npumake.make.build import Build
from npumake.make.remote_files import USER_FILE, user_folder
from npumake.make.roots import node_keys
from npumake.make.trust import policy_of, signing_key
from npumake.project.shared_cache import UserFile, read


class Packing(NamedTuple):
    """The artifacts, and the names of nodes without one."""

    artifacts: tuple[PackedEntry, ...]
    absent: tuple[str, ...]


def user_signing_key() -> SigningKey:
    """Raises ProjectError if the user has none."""
    signing = signing_key(read(user_folder() / USER_FILE, UserFile))
    if signing is None:
        raise ProjectError("there is no signing key", hint="npumake cache keygen creates one")
    return signing


def packed_artifacts(
    builds: Sequence[Build], near: LocalStore, signing: SigningKey | None
) -> Packing:
    """The artifacts that the builds would find in the store. Own records are signed by `signing`,
    if any; those of others keep the signature of their writer."""
    contents = inventory(near)
    digests = {e.key: e.digest for e in contents.entries if e.digest in contents.blobs}
    names: dict[str, str] = {}
    absent: list[str] = []
    for build in builds:
        keys = node_keys(build, digests.get)
        names |= {key: name for name, key in keys.by_node.items()}
        absent += [name for name, key in keys.by_node.items() if key not in digests]
        absent += keys.unknown
    in_use = [entry for entry in entries_in_use(contents, names) if entry.digest in contents.blobs]
    by_digest: dict[str, dict[str, bytes]] = {}
    for entry in in_use:
        envelopes = by_digest.setdefault(entry.digest, {})
        if entry.key not in envelopes and (data := _envelope(near, entry, signing)):
            envelopes[entry.key] = data
    artifacts = (
        PackedEntry(digest, contents.blobs[digest].size, tuple(sorted(envelopes.items())))
        for digest, envelopes in by_digest.items()
        if envelopes
    )
    return Packing(tuple(sorted(artifacts)), tuple(absent))


def _envelope(near: LocalStore, entry: CacheEntry, signing: SigningKey | None) -> bytes | None:
    """The envelope of an entry; None if it has vanished."""
    if entry.file.kind == "envelope":
        try:
            return (near.root / entry.file.name).read_bytes()
        except FileNotFoundError:
            return None
    record = near.recall(entry.key)
    if record is None:
        return None
    unsigned = Envelope(entry.key, record, None, None)
    return packed(unsigned if signing is None else signing.sign(entry.key, record))


def unpack(file: Path, near: LocalStore, workspace: Path, unsigned: bool) -> Arrivals:
    """Stores the archive's contents as far as the workspace trusts their signers.

    Signed records are stored like fetched ones: with their signature, which is verified at each
    use. With `unsigned`, those without a signature count as built here. Raises PipelineError.
    """
    policy = policy_of(workspace, signing_key(read(user_folder() / USER_FILE, UserFile)))

    def judge(key: str, data: bytes) -> TrustVerdict:
        verdict = policy.judge(key, data)
        envelope = unpacked(data) if unsigned and verdict.standing == "unsigned" else None
        return verdict if envelope is None else TrustVerdict("trusted", record=envelope.record)

    def keep(key: str, data: bytes, record: Record) -> None:
        if policy.judge(key, data).record is None:
            near.remember(key, record)
        else:
            near.write(envelope_file(near.root, key), data)

    return read_archive(file, near, judge, keep)
