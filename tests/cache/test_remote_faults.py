"""A remote that misbehaves gives nothing, breaks nothing and costs no more than its bound.

Requests are counted; no test waits for a limit that a loaded machine could reach by itself. Only
faults that end by a limit get a short one.
"""

import hashlib
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from npumake.cache.remote.envelope import packed
from npumake.cache.remote.layered import LayeredStore
from npumake.cache.remote.ledger import MAX_FAILURES
from processes import eventually
from remote_servers import FAULTS, Faulty, faulty, free_port
from remote_stores import CALM, QUICK, keep, machine, restored, signing, upload
from workspaces import few

DATA = hashlib.shake_256(b"data").digest(300_000)
OTHER = hashlib.shake_256(b"other").digest(300_000)
# Faults after which the same blob still arrives: a reset and an early end are resumed.
MENDED = {"resets", "truncates"}
# Faults that only a limit ends, and those that take long to answer.
ENDLESS = {"stalls", "stalls midway", "drips", "answers 404 late"}


@pytest.fixture
def server() -> Iterator[Faulty]:
    with faulty() as found:
        yield found


@pytest.fixture
def key(server: Faulty, tmp_path: Path) -> str:
    """Of an artifact that the remote has, beside another one."""
    here = machine(tmp_path, server.url, "here", signing(tmp_path))
    name, _ = keep(here, tmp_path, "a", DATA)
    keep(here, tmp_path, "b", OTHER)
    assert upload(here) == ""
    server.seen.clear()
    return name


def reader(server: Faulty, tmp_path: Path, name: str = "there") -> LayeredStore:
    patience = QUICK if server.fault in ENDLESS else CALM
    return machine(tmp_path, server.url, name, signing(tmp_path), patience=patience)


UNLIKE = {
    *("stalls", "resets", "sends another's", "flips a bit"),
    *("answers 401", "answers 500", "answers 404 late", "sends odd numbers"),
}


@pytest.mark.parametrize("kind", ["ac/", "cas/"])
@pytest.mark.parametrize("fault", few(FAULTS, UNLIKE.__contains__))
def test_a_fault_is_a_miss(server: Faulty, key: str, tmp_path: Path, fault: str, kind: str) -> None:
    server.fault, server.applies = fault, lambda name: name.startswith(kind)
    there = reader(server, tmp_path)
    data = restored(there, key, tmp_path / "copy")
    assert data is None or (data == DATA and fault in MENDED)
    if data is None:
        assert not list(there.near.root.glob("blobs/*/*"))
    assert not list(there.near.root.glob("quarantine/*"))
    name, record = keep(there, tmp_path, "made here", b"made here")
    assert there.recall(name) == record


@pytest.mark.slow(cases=19)
@pytest.mark.parametrize("fault", few(FAULTS, UNLIKE.__contains__))
def test_a_fault_in_everything_is_asked_for_only_so_often(
    server: Faulty, key: str, tmp_path: Path, fault: str
) -> None:
    server.fault = fault
    there = reader(server, tmp_path)
    for _ in range(20):
        assert restored(there, key, tmp_path / "copy") is None
    if fault == "answers 404":  # that is no fault: it has nothing
        return
    if there.note:  # the breaker is open
        assert server.url in there.note
        assert len(server.seen) <= 3 * MAX_FAILURES + 1
    else:  # it answered, and nobody believed it
        assert fault not in ENDLESS
        assert len(server.seen) == 20


def test_a_remote_that_lacks_everything_slowly_is_given_up(
    server: Faulty, key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a clock that only the server moves: each answer takes nearly half of the bound."""
    now = [0.0]

    def takes_long(name: str) -> bool:
        now[0] += 0.45 * CALM.bound
        return True

    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    server.fault, server.applies = "answers 404", takes_long
    there = reader(server, tmp_path)
    for _ in range(20):
        assert restored(there, key, tmp_path / "copy") is None
    assert "too slow" in there.note
    assert len(server.seen) == 3


def test_the_breaker_opens_for_other_processes_too(
    server: Faulty, key: str, tmp_path: Path
) -> None:
    server.fault = "stalls"
    there = reader(server, tmp_path)
    assert restored(there, key, tmp_path / "copy") is None
    assert there.note
    assert eventually(lambda: server.seen)
    later = reader(server, tmp_path)
    assert later.note == there.note
    assert restored(later, key, tmp_path / "copy") is None
    assert len(server.seen) == 1


def test_a_remote_that_is_down_is_tried_once(tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    there = machine(tmp_path, url, "there", signing(tmp_path), patience=CALM)
    assert there.recall("0" * 64) is None
    assert there.note == f"the remote cache {url} is not used: connection refused"


def test_a_remote_that_accepts_and_is_silent_is_given_up(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        there = machine(tmp_path, url, "there", signing(tmp_path), patience=QUICK)
        while not there.note:
            assert there.recall("0" * 64) is None
        assert there.note.endswith("no answer") or "too slow" in there.note


def test_wrong_bytes_are_replaced_by_who_makes_them_again(
    server: Faulty, key: str, tmp_path: Path
) -> None:
    name = next(name for name, data in server.blobs.items() if data == DATA)
    server.blobs[name] = DATA[::-1]
    there = reader(server, tmp_path)
    assert restored(there, key, tmp_path / "copy") is None
    keep(there, tmp_path, "a", DATA)
    assert upload(there) == ""
    assert server.blobs[name] == DATA


def test_a_reset_download_goes_on_where_it_was(server: Faulty, key: str, tmp_path: Path) -> None:
    once = iter([True])
    server.fault = "resets"
    server.applies = lambda name: name.startswith("cas/") and next(once, False)
    there = machine(tmp_path, server.url, "there", signing(tmp_path), patience=CALM)
    assert restored(there, key, tmp_path / "copy") == DATA
    ranges = [headers.get("Range") for verb, name, headers in server.seen if "cas/" in name]
    assert ranges[0] is None
    assert ranges[1] is None or ranges[1].startswith("bytes=")


def test_what_lay_in_a_part_and_was_damage_does_no_harm(
    server: Faulty, key: str, tmp_path: Path
) -> None:
    there = reader(server, tmp_path)
    record = there.recall(key)
    assert record is not None
    part = there.near.root / "partial" / record.digest
    part.parent.mkdir(parents=True)
    part.write_bytes(b"damage" * 1000)
    assert restored(there, key, tmp_path / "copy") == DATA


@pytest.mark.parametrize("size", [len(DATA), len(DATA) + 7])
def test_a_whole_or_longer_part_is_verified_too(
    server: Faulty, key: str, tmp_path: Path, size: int
) -> None:
    there = reader(server, tmp_path)
    record = there.recall(key)
    assert record is not None
    part = there.near.root / "partial" / record.digest
    part.parent.mkdir(parents=True)
    part.write_bytes(bytes(size))
    assert restored(there, key, tmp_path / "copy") == DATA


def test_two_that_fetch_the_same_both_get_it(server: Faulty, key: str, tmp_path: Path) -> None:
    there, got = reader(server, tmp_path), []

    def fetch(number: int) -> None:
        store = reader(server, tmp_path)
        got.append(restored(store, key, tmp_path / f"copy {number}"))

    threads = [threading.Thread(target=fetch, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert got == [DATA] * 6
    assert os.listdir(there.near.root / "partial") == []


# -- records that are not to be believed -------------------------------------------------------

Forgery = Callable[[Faulty, str, Path], None]


def _unsigned(server: Faulty, key: str, tmp_path: Path) -> None:
    envelope = _envelope_of(tmp_path, key)
    server.blobs[f"ac/{key}"] = packed(_without(envelope))


def _foreign(server: Faulty, key: str, tmp_path: Path) -> None:
    record = _envelope_of(tmp_path, key).record
    server.blobs[f"ac/{key}"] = packed(signing(tmp_path, "stranger").sign(key, record))


def _claimed(server: Faulty, key: str, tmp_path: Path) -> None:
    """A stranger's signature under the name of the writer."""
    from dataclasses import replace

    record = _envelope_of(tmp_path, key).record
    forged = signing(tmp_path, "stranger").sign(key, record)
    server.blobs[f"ac/{key}"] = packed(replace(forged, signer=signing(tmp_path).public))


def _repointed(server: Faulty, key: str, tmp_path: Path) -> None:
    """The writer's signature under another digest, size or time."""
    from dataclasses import replace

    signed = _envelope_of(tmp_path, key)
    other = next(name for name, data in server.blobs.items() if data == OTHER)
    record = replace(signed.record, digest=other.removeprefix("cas/"))
    server.blobs[f"ac/{key}"] = packed(replace(signed, record=record))


def _retimed(server: Faulty, key: str, tmp_path: Path) -> None:
    from dataclasses import replace

    signed = _envelope_of(tmp_path, key)
    record = replace(signed.record, seconds=1e9)
    server.blobs[f"ac/{key}"] = packed(replace(signed, record=record))


def _replayed(server: Faulty, key: str, tmp_path: Path) -> None:
    other = next(n for n in server.blobs if n.startswith("ac/") and n != f"ac/{key}")
    server.blobs[f"ac/{key}"] = server.blobs[other]


def _damaged(server: Faulty, key: str, tmp_path: Path) -> None:
    server.blobs[f"ac/{key}"] = b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"


def _empty(server: Faulty, key: str, tmp_path: Path) -> None:
    server.blobs[f"ac/{key}"] = b""


def _envelope_of(tmp_path: Path, key: str):  # type: ignore[no-untyped-def]
    from npumake.cache.local import LocalStore

    record = LocalStore(tmp_path / "here").recall(key)
    assert record is not None
    return signing(tmp_path).sign(key, record)


def _without(envelope):  # type: ignore[no-untyped-def]
    from dataclasses import replace

    return replace(envelope, signer=None, signature=None)


FORGERIES: dict[str, tuple[Forgery, str]] = {
    "unsigned": (_unsigned, "its record is not signed"),
    "foreign": (_foreign, "a key that trust.yaml lacks"),
    "claimed": (_claimed, "does not carry the signature of writer"),
    "repointed": (_repointed, "does not carry the signature of writer"),
    "retimed": (_retimed, "does not carry the signature of writer"),
    "replayed": (_replayed, "signed for another key"),
    "damaged": (_damaged, "its record is damaged"),
    "empty": (_empty, "its record is damaged"),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_record_that_is_not_the_writers_is_a_miss_with_a_reason(
    server: Faulty, key: str, tmp_path: Path, forgery: str
) -> None:
    forge, reason = FORGERIES[forgery]
    forge(server, key, tmp_path)
    there = reader(server, tmp_path)
    assert restored(there, key, tmp_path / "copy") is None
    sentence, record = there.opinion(key)
    assert record is None
    assert reason in sentence
    assert server.asked("GET") == [f"ac/{key}"] * 2
    assert not (there.near.root / "signed").exists()


def test_a_revoked_key_is_read_no_longer_not_even_what_was_kept(
    server: Faulty, key: str, tmp_path: Path
) -> None:
    from dataclasses import replace

    writer = signing(tmp_path).public
    there = reader(server, tmp_path)
    assert restored(there, key, tmp_path / "copy") == DATA
    server.blobs.clear()
    assert reader(server, tmp_path).recall(key) is not None
    later = reader(server, tmp_path)
    later.policy = replace(later.policy, revoked=frozenset({writer}))
    assert later.recall(key) is None
    assert "whose key is revoked" in str(later.policy.judge(key, later._stored_envelope(key)))


def test_what_came_from_others_is_no_record_of_the_near_store(
    server: Faulty, key: str, tmp_path: Path
) -> None:
    there = reader(server, tmp_path)
    assert restored(there, key, tmp_path / "copy") == DATA
    assert there.near.recall(key) is None


# -- what it is worth --------------------------------------------------------------------------


def test_what_is_made_faster_than_fetched_is_not_fetched(
    server: Faulty, key: str, tmp_path: Path
) -> None:
    there = reader(server, tmp_path)
    assert there.far is not None
    there.far.rates.bandwidth = len(DATA) / 100  # it would take 100 s; making took 60
    assert restored(there, key, tmp_path / "copy") is None
    assert server.asked("GET") == [f"ac/{key}"]
    there.far.rates.bandwidth = len(DATA) / 50
    assert restored(there, key, tmp_path / "copy") == DATA


def test_a_build_learns_the_bandwidth_from_an_earlier_one(
    server: Faulty, key: str, tmp_path: Path
) -> None:
    there = reader(server, tmp_path)
    assert restored(there, key, tmp_path / "copy") == DATA
    assert there.far is not None
    later = reader(server, tmp_path)
    assert later.far is not None
    assert later.far.rates == there.far.rates
    assert later.far.rates.bandwidth > 0


def test_nothing_is_asked_of_it_for_what_is_here(server: Faulty, key: str, tmp_path: Path) -> None:
    there = reader(server, tmp_path)
    name, _ = keep(there, tmp_path, "mine", b"mine")
    assert restored(there, name, tmp_path / "copy") == b"mine"
    assert server.seen == []


def test_what_was_not_uploaded_is_uploaded_by_the_next_build(
    server: Faulty, key: str, tmp_path: Path
) -> None:
    there = machine(tmp_path, f"http://127.0.0.1:{free_port()}", "there", signing(tmp_path))
    name, _ = keep(there, tmp_path, "later", b"later")
    assert "connection refused" in upload(there)
    again = reader(server, tmp_path)
    assert upload(again) == ""
    assert f"ac/{name}" in server.blobs


def test_a_damaged_blob_is_not_uploaded(server: Faulty, key: str, tmp_path: Path) -> None:
    there = reader(server, tmp_path)
    name, record = keep(there, tmp_path, "rotten", b"rotten")
    blob = there.near.blob(record.digest)
    blob.chmod(0o644)
    blob.write_bytes(b"ROTTEN")
    assert upload(there) == ""
    assert f"ac/{name}" not in server.blobs
    assert f"cas/{record.digest}" not in server.blobs
