"""`verify` names every damage of a store, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from npumake.cache.inventory import inventory
from npumake.cache.local import LocalStore
from npumake.cache.pins import pin
from npumake.cache.remote.envelope import Envelope, envelope_file, packed
from npumake.cache.store import Record
from npumake.cache.verify import damages
from npumake.digest import canonical, of_bytes, of_document
from remote_stores import document, signing

DIGEST = of_bytes(b"data")
RECORD = Record(document("data"), DIGEST, 4)
KEY = of_document(RECORD.document)


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    """A store with one file of each kind."""
    store = LocalStore(tmp_path / "cache")
    (tmp_path / "data").write_bytes(b"data")
    store.put(tmp_path / "data")
    store.remember(KEY, RECORD)
    envelope = envelope_file(store.root, KEY)
    envelope.parent.mkdir(parents=True)
    envelope.write_bytes(packed(signing(tmp_path).sign(KEY, RECORD)))
    (store.root / "closures").mkdir()
    closure = canonical({"npumake.errors": "x"})
    (store.root / "closures" / f"{of_bytes(closure)}.json").write_bytes(closure)
    pin(store.root, "v1", {KEY: "digits:quantized"})
    return store


def damage_by_kind(store: LocalStore) -> dict[str, str]:
    """The damages by kind."""
    return {damage.file.kind: damage.what for damage in damages(store, inventory(store))}


def write(path: Path, data: bytes) -> None:
    path.chmod(0o644)
    path.write_bytes(data)


def only(store: LocalStore, pattern: str) -> Path:
    (path,) = store.root.glob(pattern)
    return path


def forge(store: LocalStore) -> None:
    forged = Envelope(KEY, RECORD, signing(store.root.parent).public, bytes(64))
    write(envelope_file(store.root, KEY), packed(forged))


DAMAGES: dict[str, tuple[Callable[[LocalStore], None], dict[str, str]]] = {
    "none": (lambda store: None, {}),
    "blob": (
        lambda store: write(store.blob(DIGEST), b"atad"),
        {"blob": "its bytes are not those of its name"},
    ),
    "cut blob": (
        lambda store: write(store.blob(DIGEST), b"da"),
        {
            "blob": "its bytes are not those of its name",
            "record": f"its artifact {DIGEST} has another size",
            "envelope": f"its artifact {DIGEST} has another size",
        },
    ),
    "missing blob": (
        lambda store: store.blob(DIGEST).unlink(),
        {
            "record": f"its artifact {DIGEST} is missing",
            "envelope": f"its artifact {DIGEST} is missing",
        },
    ),
    "record": (
        lambda store: write(only(store, "records/*/*"), b"{}"),
        {"record": "the record is damaged"},
    ),
    "envelope": (
        lambda store: write(envelope_file(store.root, KEY), b"x"),
        {"envelope": "the record is damaged"},
    ),
    "signature": (forge, {"envelope": "the record does not carry the signature of its signer"}),
    "closure": (
        lambda store: write(only(store, "closures/*"), b"{}"),
        {"closure": "its bytes are not those of its name"},
    ),
    "pin": (lambda store: write(only(store, "pins/*"), b"{}"), {"pin": "the pin `v1` is damaged"}),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_every_damage_is_named_and_no_other(store: LocalStore, name: str) -> None:
    damage, expected = DAMAGES[name]
    damage(store)
    before = sorted(store.root.rglob("*"))
    assert damage_by_kind(store) == expected
    assert sorted(store.root.rglob("*")) == before


def test_an_empty_store_is_whole(tmp_path: Path) -> None:
    assert damage_by_kind(LocalStore(tmp_path)) == {}


def test_other_files_are_no_contents(store: LocalStore) -> None:
    before = [*inventory(store).files]
    for name in ("blobs/README", "blobs/ab/README", "records/ab/.tmp-x", "outbox/x", "scratch/x"):
        path = store.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
    assert [*inventory(store).files] == before
