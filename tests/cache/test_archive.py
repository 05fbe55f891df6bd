"""An archive brings what it was given, to whoever trusts its signer; a damaged one brings less."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from npumake.cache import unpacking
from npumake.cache.archive import PackedEntry, write_archive
from npumake.cache.local import LocalStore
from npumake.cache.remote.envelope import MAX_ENVELOPE_BYTES, Envelope, packed, unpacked
from npumake.cache.remote.trust import Policy, TrustVerdict
from npumake.cache.store import Record
from npumake.cache.unpacking import Arrivals, read_archive
from npumake.digest import of_bytes, of_document
from npumake.errors import CacheError
from remote_stores import document, signing

DATA = {"a": b"", "b": b"x" * 511, "c": bytes(range(256)) * 9, "d": b"same", "e": b"same"}


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path / "from")


def record_of(name: str, data: bytes) -> tuple[str, Record]:
    record = Record(document(name), of_bytes(data), len(data), 1.5)
    return of_document(record.document), record


def unsigned(key: str, record: Record) -> bytes:
    return packed(Envelope(key, record, None, None))


def contents(
    store: LocalStore, root: Path, envelope: Callable[[str, Record], bytes]
) -> list[PackedEntry]:
    by_digest: dict[str, list[tuple[str, bytes]]] = {}
    for name, data in DATA.items():
        (root / "artifact").write_bytes(data)
        key, record = record_of(name, data)
        store.put(root / "artifact")
        by_digest.setdefault(record.digest, []).append((key, envelope(key, record)))
    sizes = {of_bytes(data): len(data) for data in DATA.values()}
    return [PackedEntry(d, sizes[d], tuple(found)) for d, found in by_digest.items()]


@pytest.fixture
def archive(store: LocalStore, tmp_path: Path) -> Path:
    write_archive(tmp_path / "archive.tar", store, contents(store, tmp_path, unsigned))
    return tmp_path / "archive.tar"


def accept(key: str, data: bytes) -> TrustVerdict:
    envelope = unpacked(data)
    if envelope is None or envelope.key != key:
        return TrustVerdict("damaged")
    return TrustVerdict("trusted", record=envelope.record)


def unpack(
    path: Path, root: Path, judge: Callable[[str, bytes], TrustVerdict] = accept
) -> tuple[LocalStore, Arrivals]:
    there = LocalStore(root / "to")
    return there, read_archive(
        path, there, judge, lambda key, _, record: there.remember(key, record)
    )


def arrived(store: LocalStore) -> set[str]:
    """The names of artifacts that can be used; every stored byte is right."""
    found = set()
    for name, data in DATA.items():
        key, record = record_of(name, data)
        stored = store.recall(key)
        assert stored in (None, record)
        if stored is not None:
            assert store.fetch(record.digest, store.root / "copy")
            assert (store.root / "copy").read_bytes() == data
            found.add(name)
    for blob in (store.root / "blobs").glob("*/*"):
        assert of_bytes(blob.read_bytes()) == blob.parent.name + blob.name
    return found


def test_an_archive_brings_what_it_was_given(archive: Path, tmp_path: Path) -> None:
    there, arrivals = unpack(archive, tmp_path)
    assert arrived(there) == {*DATA}
    assert (arrivals.records, arrivals.artifacts, arrivals.refused) == (5, 4, {})
    assert arrivals.size == sum(map(len, set(DATA.values())))


def test_the_same_contents_are_the_same_bytes_in_any_order(
    store: LocalStore, archive: Path, tmp_path: Path
) -> None:
    again = tmp_path / "again.tar"
    write_archive(again, store, reversed(contents(store, tmp_path, unsigned)))
    assert again.read_bytes() == archive.read_bytes()


def test_an_archive_is_a_plain_tar(archive: Path) -> None:
    with tarfile.open(archive, "r:") as tar:
        members = tar.getmembers()
        assert all(member.isfile() and member.mode == 0o644 for member in members)
        assert json.loads(tar.extractfile(members[0]).read())["records"] == 5
        for member in members[1:]:
            if member.name.startswith("cas/"):
                assert of_bytes(tar.extractfile(member).read()) == member.name[4:]


def test_a_signature_counts_where_its_signer_is_trusted(store: LocalStore, tmp_path: Path) -> None:
    writer, other = signing(tmp_path), signing(tmp_path, "other")
    sign = lambda key, record: packed(writer.sign(key, record))  # noqa: E731
    write_archive(tmp_path / "signed.tar", store, contents(store, tmp_path, sign))
    policies = {
        "trusted": Policy(lambda: {writer.public: "ci"}),
        "foreign": Policy(lambda: {other.public: "ci"}),
        "revoked": Policy(lambda: {writer.public: "ci"}, frozenset({writer.public})),
    }
    for standing, policy in policies.items():
        (tmp_path / standing).mkdir()
        there, arrivals = unpack(tmp_path / "signed.tar", tmp_path / standing, policy.judge)
        assert arrived(there) == ({*DATA} if standing == "trusted" else set())
        assert len(arrivals.refused) == (0 if standing == "trusted" else 5)
        assert (there.root / "blobs").exists() is (standing == "trusted")


def test_a_record_that_was_signed_for_another_key_is_refused(
    store: LocalStore, tmp_path: Path
) -> None:
    writer = signing(tmp_path)
    key, record = record_of("c", DATA["c"])
    other, _ = record_of("b", DATA["b"])
    (tmp_path / "artifact").write_bytes(DATA["c"])
    store.put(tmp_path / "artifact")
    forged = [PackedEntry(record.digest, record.size, ((other, packed(writer.sign(key, record))),))]
    write_archive(tmp_path / "forged.tar", store, forged)
    _, arrivals = unpack(
        tmp_path / "forged.tar", tmp_path, Policy(lambda: {writer.public: "ci"}).judge
    )
    assert "another key" in arrivals.refused[other]


@pytest.mark.parametrize("share", range(0, 100, 4))
def test_a_cut_archive_brings_whole_artifacts_and_says_so(
    archive: Path, tmp_path: Path, share: int
) -> None:
    data = archive.read_bytes().rstrip(b"\0")
    archive.write_bytes(data[: len(data) * share // 100])
    with pytest.raises(CacheError, match=r"damaged|not an archive"):
        unpack(archive, tmp_path)
    assert arrived(LocalStore(tmp_path / "to")) < {*DATA}


@pytest.mark.parametrize("seed", range(60))
def test_a_flipped_bit_brings_no_wrong_byte(archive: Path, tmp_path: Path, seed: int) -> None:
    data = bytearray(archive.read_bytes())
    at = seed * 7919 % len(data)
    data[at] ^= 1 << seed % 8
    archive.write_bytes(bytes(data))
    with suppress(CacheError):
        unpack(archive, tmp_path)
    assert arrived(LocalStore(tmp_path / "to")) <= {*DATA}


def member(name: str, data: bytes = b"", **fields: object) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.size = len(data)
    for field, value in fields.items():
        setattr(info, field, value)
    return info, data


KEY, RECORD = record_of("c", DATA["c"])
ENVELOPE = unsigned(KEY, RECORD)
HEADER = member("npumake-cache", b'{"format":1,"records":1,"artifacts":1}')
ACCEPTED = member(f"ac/{KEY}", ENVELOPE)
BLOB = member(f"cas/{RECORD.digest}", DATA["c"])
HOSTILE = {
    "no header": [ACCEPTED, BLOB],
    "another format": [member("npumake-cache", b'{"format":2,"records":1,"artifacts":1}')],
    "no JSON": [member("npumake-cache", b"[" * 4000)],
    "a path": [HEADER, member("../../evil", b"x")],
    "an absolute path": [HEADER, member("/tmp/evil", b"x")],
    "a path behind a name": [HEADER, member(f"cas/{RECORD.digest}/../../x", b"x")],
    "a link": [
        HEADER,
        member(f"cas/{RECORD.digest}", type=tarfile.SYMTYPE, linkname="/etc/passwd"),
    ],
    "a hard link": [HEADER, member(f"ac/{KEY}", type=tarfile.LNKTYPE, linkname="/etc/passwd")],
    "a device": [HEADER, member(f"ac/{KEY}", type=tarfile.CHRTYPE)],
    "a folder": [HEADER, member(f"cas/{RECORD.digest}", type=tarfile.DIRTYPE)],
    "an extended header": [HEADER, member("x" * 100, b"30 path=cas/x\n", type=tarfile.XHDTYPE)],
    "a long name": [HEADER, member("././@LongLink", b"x" * 300, type=tarfile.GNUTYPE_LONGNAME)],
    "a sparse file": [HEADER, member(f"cas/{RECORD.digest}", b"x", type=tarfile.GNUTYPE_SPARSE)],
    "wrong bytes": [HEADER, ACCEPTED, member(f"cas/{RECORD.digest}", DATA["c"][::-1])],
    "another size": [HEADER, ACCEPTED, member(f"cas/{RECORD.digest}", DATA["c"] + b"x")],
    "another artifact": [HEADER, ACCEPTED, member(f"cas/{of_bytes(b'x')}", b"x")],
    "a record without its artifact": [HEADER, ACCEPTED],
    "a record that is too large": [HEADER, member(f"ac/{KEY}", bytes(MAX_ENVELOPE_BYTES + 1))],
    "fewer than it says": [HEADER],
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_archive_is_refused(name: str, tmp_path: Path) -> None:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:", format=tarfile.GNU_FORMAT) as tar:
        for info, data in HOSTILE[name]:
            tar.addfile(info, io.BytesIO(data))
    (tmp_path / "hostile.tar").write_bytes(file.getvalue())
    with pytest.raises(CacheError, match="archive"):
        unpack(tmp_path / "hostile.tar", tmp_path)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [path.name for path in files] == ["hostile.tar"]


def test_a_huge_size_is_not_believed(archive: Path, tmp_path: Path) -> None:
    data = archive.read_bytes()
    info = tarfile.TarInfo(f"cas/{RECORD.digest}")
    info.size = 1 << 50
    archive.write_bytes(data[:1024] + info.tobuf(tarfile.GNU_FORMAT))
    with pytest.raises(CacheError, match="it ends early"):
        unpack(archive, tmp_path)


def test_records_of_one_artifact_are_bounded(
    archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unpacking, "MAX_PENDING_BYTES", 10)
    with pytest.raises(CacheError, match="too many records"):
        unpack(archive, tmp_path)


def test_a_damaged_artifact_is_not_packed(store: LocalStore, tmp_path: Path) -> None:
    packed_up = contents(store, tmp_path, unsigned)
    blob = store.blob(of_bytes(DATA["c"]))
    blob.chmod(0o644)
    blob.write_bytes(DATA["c"][::-1])
    with pytest.raises(CacheError, match="is damaged"):
        write_archive(tmp_path / "archive.tar", store, packed_up)
    assert not (tmp_path / "archive.tar").exists()


@pytest.mark.parametrize("name", ["absent", "folder"])
def test_what_is_no_file_is_told(name: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(CacheError, match="cannot read"):
        unpack(tmp_path / name, tmp_path)
