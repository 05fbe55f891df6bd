"""Reads everything that a store holds and compares it with its names and seals."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

from npumake.cache.inventory import CacheEntry, Inventory, StoredFile, key_of
from npumake.cache.local import LocalStore
from npumake.cache.pins import pinned
from npumake.cache.remote.envelope import payload, unpacked
from npumake.cache.remote.trust import is_signed
from npumake.digest import of_file
from npumake.errors import CacheError
from npumake.progress import track


class Damage(NamedTuple):
    """A damaged file of the store, and the damage."""

    file: StoredFile
    what: str


def damages(store: LocalStore, contents: Inventory) -> Iterator[Damage]:
    """Every damage, in the order of the files. Nothing is changed."""
    files = list(contents.files)
    entries = {entry.file: entry for entry in contents.entries}
    for file in track(files, "verifying", len(files)):
        try:
            message = _damage(store, file, entries.get(file))
        except FileNotFoundError:  # removed meanwhile
            continue
        except OSError as error:
            message = f"cannot be read: {(error.strerror or 'error').lower()}"
        if message:
            yield Damage(file, message)


def _damage(store: LocalStore, file: StoredFile, entry: CacheEntry | None) -> str:
    """The damage of a file; empty without one. Raises OSError."""
    path = store.root / file.name
    if file.kind in ("blob", "closure"):
        is_whole = of_file(path) == key_of(file)
        return "" if is_whole else "its bytes are not those of its name"
    if file.kind == "pin":
        try:
            pinned(store.root, path.stem)
        except CacheError as error:
            return error.what
    if entry is None:
        return ""
    if not entry.digest:
        path.open("rb").close()  # unreadable is not damaged
        return "the record is damaged"
    if file.kind == "envelope" and not _is_signed(path.read_bytes()):
        return "the record does not carry the signature of its signer"
    return _artifact_damage(store, entry)


def _artifact_damage(store: LocalStore, entry: CacheEntry) -> str:
    try:
        size = os.stat(store.blob(entry.digest)).st_size
    except FileNotFoundError:
        return f"its artifact {entry.digest} is missing"
    return "" if size == entry.size else f"its artifact {entry.digest} has another size"


def _is_signed(data: bytes) -> bool:
    envelope = unpacked(data)
    if envelope is None or envelope.signer is None or envelope.signature is None:
        return False
    signed = payload(envelope.key, envelope.record)
    return is_signed(signed, envelope.signer, envelope.signature)
