"""What every store promises, asked of every store."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

import npumake
from npumake.cache.local import LocalStore
from npumake.cache.memory import MemoryStore
from npumake.cache.remote.layered import LayeredStore
from npumake.cache.store import Record, Store
from npumake.digest import canonical, of_bytes, of_document
from npumake.errors import CacheError
from remote_stores import machine, signing

ROOT = Path(npumake.__file__).parents[1]
ABSENT = "f" * 64
DOCUMENT = {"stage": "calibrated", "params": {"percentile": 99.99}, "inputs": ["ä", None]}
KEY = of_document(DOCUMENT)
RECORD = Record(DOCUMENT, of_bytes(b"blob"), 4)

PUT_ALL = """
import sys
from pathlib import Path
from npumake.cache.local import LocalStore
store = LocalStore(Path(sys.argv[1]))
for turn in range(5):
    for path in sys.argv[2:]:
        store.put(Path(path))
"""

PUT_INTO_LESS = """
import resource, sys
from pathlib import Path
from npumake.cache.local import LocalStore
from npumake.errors import CacheError
resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))
try:
    LocalStore(Path(sys.argv[1])).put(Path(sys.argv[2]))
except CacheError as error:
    print(error.what)
"""


def write_local(store: Store, kind: str, name: str, data: bytes) -> None:
    store = store.near if isinstance(store, LayeredStore) else store
    assert isinstance(store, LocalStore)
    tail = f"{name[2:]}.json" if kind == "records" else name[2:]
    path = store.root / kind / name[:2] / tail
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.write_bytes(data)


def write_memory(store: Store, kind: str, name: str, data: bytes) -> None:
    assert isinstance(store, MemoryStore)
    (store.records if kind == "records" else store.blobs)[name] = data


def quarantined(store: Store) -> dict[str, bytes]:
    if isinstance(store, MemoryStore):
        return store.quarantine
    store = store.near if isinstance(store, LayeredStore) else store
    assert isinstance(store, LocalStore)
    return {path.name: path.read_bytes() for path in (store.root / "quarantine").iterdir()}


def layered(root: Path) -> Store:
    """In front of a remote that has nothing: nobody uploads while a contract is tested."""
    (root / "share").mkdir()
    return machine(root, f"file://{root}/share", "cache", signing(root))


Damage = Callable[[Store, str, str, bytes], None]
STORES: dict[str, tuple[Callable[[Path], Store], Damage]] = {
    "local": (lambda root: LocalStore(root / "cache"), write_local),
    "layered": (layered, write_local),
    "memory": (lambda _: MemoryStore(), write_memory),
}


@pytest.fixture(params=STORES)
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Store, Damage]:
    make, damage = STORES[request.param]
    return make(tmp_path), damage


@pytest.fixture
def store(pair: tuple[Store, Damage]) -> Store:
    return pair[0]


@pytest.fixture
def damage(pair: tuple[Store, Damage]) -> Damage:
    return pair[1]


@pytest.fixture
def blob(tmp_path: Path) -> Path:
    path = tmp_path / "blob"
    path.write_bytes(b"blob")
    return path


def test_what_is_put_is_fetched(store: Store, blob: Path, tmp_path: Path) -> None:
    digest = store.put(blob)
    assert digest == of_bytes(b"blob")
    assert store.has(digest)
    assert store.fetch(digest, tmp_path / "deep" / "down" / "copy")
    assert (tmp_path / "deep" / "down" / "copy").read_bytes() == b"blob"


@pytest.mark.parametrize("data", [b"", bytes(range(256)) * 9000])
def test_any_bytes_are_kept(store: Store, tmp_path: Path, data: bytes) -> None:
    (tmp_path / "given").write_bytes(data)
    assert store.fetch(store.put(tmp_path / "given"), tmp_path / "got")
    assert (tmp_path / "got").read_bytes() == data


def test_what_is_remembered_is_recalled(store: Store) -> None:
    store.remember(KEY, RECORD)
    assert store.recall(KEY) == RECORD


def test_a_document_is_recalled_as_json_knows_it(store: Store) -> None:
    store.remember(of_document({"axes": (0, 1)}), replace(RECORD, document={"axes": (0, 1)}))
    recalled = store.recall(of_document({"axes": [0, 1]}))
    assert recalled is not None
    assert recalled.document == {"axes": [0, 1]}


def test_the_last_record_counts(store: Store) -> None:
    store.remember(KEY, RECORD)
    later = replace(RECORD, digest=of_bytes(b"other"), size=5)
    store.remember(KEY, later)
    assert store.recall(KEY) == later


def test_absence_is_a_value(store: Store, tmp_path: Path) -> None:
    assert not store.has(ABSENT)
    assert store.recall(ABSENT) is None
    assert not store.fetch(ABSENT, tmp_path / "new" / "copy")
    assert not (tmp_path / "new").exists()


def test_an_absent_blob_leaves_the_old_file(store: Store, tmp_path: Path) -> None:
    old = tmp_path / "old"
    old.write_bytes(b"old")
    assert not store.fetch(ABSENT, old)
    assert old.read_bytes() == b"old"


def test_a_fetched_copy_is_the_users_own(store: Store, blob: Path, tmp_path: Path) -> None:
    digest = store.put(blob)
    assert store.fetch(digest, tmp_path / "copy")
    (tmp_path / "copy").write_bytes(b"edited")
    assert store.fetch(digest, tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == b"blob"


@pytest.mark.parametrize("bytes_there", [b"blub", b"", b"blob and more"])
def test_a_damaged_blob_is_set_aside_and_absent(
    store: Store, damage: Damage, blob: Path, tmp_path: Path, bytes_there: bytes
) -> None:
    digest = store.put(blob)
    damage(store, "blobs", digest, bytes_there)
    old = tmp_path / "old"
    old.write_bytes(b"old")
    assert not store.fetch(digest, old)
    assert old.read_bytes() == b"old"
    assert not store.has(digest)
    assert quarantined(store) == {digest: bytes_there}


def test_a_damaged_blob_is_put_again(
    store: Store, damage: Damage, blob: Path, tmp_path: Path
) -> None:
    digest = store.put(blob)
    damage(store, "blobs", digest, b"blub")
    assert not store.fetch(digest, tmp_path / "copy")
    assert store.put(blob) == digest
    assert store.fetch(digest, tmp_path / "copy")


def test_a_cut_blob_is_mended_by_put(
    store: Store, damage: Damage, blob: Path, tmp_path: Path
) -> None:
    digest = store.put(blob)
    damage(store, "blobs", digest, b"bl")
    store.put(blob)
    assert store.fetch(digest, tmp_path / "copy")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff",
        b"[]",
        b"null",
        b'"text"',
        b"[" * 100_000,
        canonical(RECORD)[:-1],
        canonical(replace(RECORD, document={"stage": "another"})),
        canonical(replace(RECORD, digest="../../etc/passwd")),
        canonical(replace(RECORD, size=-1)),
        canonical({"document": DOCUMENT, "digest": 7, "size": 4}),
        canonical({"document": DOCUMENT, "digest": ABSENT, "size": "4"}),
        canonical({"document": DOCUMENT, "digest": ABSENT}),
        canonical(RECORD).replace(b"99.99", b"NaN"),
    ],
)
def test_a_damaged_record_is_set_aside_and_absent(
    store: Store, damage: Damage, data: bytes
) -> None:
    store.remember(KEY, RECORD)
    damage(store, "records", KEY, data)
    assert store.recall(KEY) is None
    assert quarantined(store) == {f"{KEY}.json": data}
    assert store.recall(KEY) is None
    store.remember(KEY, RECORD)
    assert store.recall(KEY) == RECORD


@pytest.mark.parametrize(
    "name", ["", "abc", "../" * 21 + "x", "/etc/passwd", "F" * 64, "g" * 64, "0" * 64 + "\n"]
)
def test_bad_names_are_refused(store: Store, tmp_path: Path, name: str) -> None:
    for verb in (
        lambda: store.has(name),
        lambda: store.fetch(name, tmp_path / "copy"),
        lambda: store.recall(name),
        lambda: store.remember(KEY, replace(RECORD, digest=name)),
    ):
        with pytest.raises(CacheError, match="is not a SHA-256"):
            verb()


def test_a_key_that_is_not_the_documents_is_a_bug(store: Store) -> None:
    with pytest.raises(ValueError, match="does not name this document"):
        store.remember(ABSENT, RECORD)
    assert store.recall(ABSENT) is None


def test_putting_an_absent_file_is_not_found(store: Store, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        store.put(tmp_path / "absent")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_putting_an_unreadable_file_is_told(store: Store, blob: Path) -> None:
    blob.chmod(0o000)
    with pytest.raises(CacheError, match=r"cannot read .*blob: permission denied"):
        store.put(blob)


def test_threads_put_the_same_and_different_bytes(store: Store, tmp_path: Path) -> None:
    data = [bytes([turn % 4]) * 100_000 for turn in range(32)]
    paths = [tmp_path / str(turn) for turn in range(32)]
    for path, content in zip(paths, data, strict=True):
        path.write_bytes(content)
    with ThreadPoolExecutor(8) as threads:
        digests = list(threads.map(store.put, paths))
        copies = [tmp_path / f"copy {turn}" for turn in range(32)]
        assert all(threads.map(store.fetch, digests, copies))
    assert digests == [of_bytes(content) for content in data]
    assert [copy.read_bytes() for copy in copies] == data


def test_processes_put_the_same_and_different_bytes(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "cache")
    paths = [tmp_path / str(turn) for turn in range(6)]
    for turn, path in enumerate(paths):
        path.write_bytes(bytes([turn % 3]) * 300_000)
    command = [sys.executable, "-c", PUT_ALL, str(store.root), *map(str, paths)]
    processes = [subprocess.Popen(command, cwd=ROOT) for _ in range(3)]
    assert [process.wait() for process in processes] == [0, 0, 0]
    assert all(store.fetch(of_bytes(path.read_bytes()), tmp_path / "copy") for path in paths)
    assert len([path for path in (store.root / "blobs").rglob("*") if path.is_file()]) == 3
    assert os.listdir(store.root / "scratch") == []


def test_a_kept_blob_is_read_only_and_not_written_again(blob: Path, tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "cache")
    digest = store.put(blob)
    kept = store.root / "blobs" / digest[:2] / digest[2:]
    before = kept.stat()
    assert before.st_mode & 0o777 == 0o444
    store.put(blob)
    after = kept.stat()
    assert (after.st_ino, after.st_mode, after.st_size) == (before.st_ino, 0o100444, 4)


def test_a_full_disk_keeps_no_half_blob(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "cache")
    (tmp_path / "big").write_bytes(bytes(1 << 20))
    command = [sys.executable, "-c", PUT_INTO_LESS, str(store.root), str(tmp_path / "big")]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert told.strip() == f"cannot write {store.root / 'blobs'}: file too large"
    assert not (store.root / "blobs").exists()
    assert os.listdir(store.root / "scratch") == []


def test_a_store_with_a_file_in_its_place_is_told(blob: Path) -> None:
    with pytest.raises(CacheError, match="cannot write"):
        LocalStore(blob).put(blob)
