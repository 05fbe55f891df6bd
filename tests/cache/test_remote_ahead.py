"""What is fetched ahead is waited for, with its record; and so is every record of an artifact."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from npumake.cache.remote.ahead import THREADS, Ahead
from npumake.cache.remote.envelope import envelope_file
from npumake.cache.remote.layered import LayeredStore
from processes import eventually
from remote_stores import keep, machine, signing, upload


def test_a_download_is_waited_for_once() -> None:
    goes_on = threading.Event()
    ahead = Ahead(lambda digest: goes_on.wait(60) and digest == "a")
    ahead.begin("a")
    ahead.begin("a")
    ahead.begin("b")
    assert ahead.result("c") is None
    goes_on.set()
    assert (ahead.result("a"), ahead.result("b")) == (True, False)
    assert (ahead.result("a"), ahead.result("b")) == (None, None)


def test_at_most_so_many_run_at_once() -> None:
    running, most, lock, gate = [0], [0], threading.Lock(), threading.Barrier(THREADS)

    def bring(digest: str) -> bool:
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        gate.wait(60)  # each waits until all threads are busy
        with lock:
            running[0] -= 1
        return True

    ahead = Ahead(bring)
    for number in range(3 * THREADS):
        ahead.begin(str(number))
    assert all(ahead.result(str(number)) for number in range(3 * THREADS))
    assert most[0] == THREADS


def test_an_error_is_raised_where_it_is_waited_for() -> None:
    def bring(digest: str) -> bool:
        raise ValueError(digest)

    ahead = Ahead(bring)
    ahead.begin("a")
    with pytest.raises(ValueError, match="a"):
        ahead.result("a")


class Slow(LayeredStore):
    """One that writes an envelope long after its blob is there."""

    def _keep(self, digest: str) -> None:
        threading.Event().wait(0.3)
        super()._keep(digest)


@pytest.fixture
def there(tmp_path: Path) -> LayeredStore:
    """A clean machine; another has uploaded two records of one artifact."""
    (tmp_path / "share").mkdir()
    url, writer = f"file://{tmp_path}/share", signing(tmp_path)
    here = machine(tmp_path, url, "here", writer)
    for name in ("a", "b"):
        keep(here, tmp_path, name, b"same")
    assert upload(here) == ""
    other = machine(tmp_path, url, "there", writer)
    return Slow(other.near, other.far, other.policy)


@pytest.mark.parametrize("verb", ["fetch", "arrived"])
def test_the_record_is_stored_when_the_artifact_is_there(
    there: LayeredStore, tmp_path: Path, verb: str
) -> None:
    key = _keys(tmp_path)[0]
    record = there.recall(key)
    assert record is not None
    there.begin(record.digest)
    assert eventually(lambda: there.near.has(record.digest))  # the blob comes first
    if verb == "fetch":
        assert there.fetch(record.digest, tmp_path / "copy")
    else:
        assert there.arrived(record.digest)
    assert envelope_file(there.near.root, key).exists()


def test_every_record_of_an_artifact_is_stored(there: LayeredStore, tmp_path: Path) -> None:
    first, second = _keys(tmp_path)
    for key in (first, second):
        record = there.recall(key)
        assert record is not None
        assert there.fetch(record.digest, tmp_path / "copy")
    assert envelope_file(there.near.root, first).exists()
    assert envelope_file(there.near.root, second).exists()


def _keys(root: Path) -> list[str]:
    return sorted(path.name for path in (root / "share" / "ac").iterdir())
