"""A sweep removes what is not in use, and nothing that was used since it looked."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from draws import examples
from npumake.cache.inventory import CacheEntry, Inventory, StoredFile, inventory
from npumake.cache.local import LocalStore
from npumake.cache.locks import locked
from npumake.cache.store import Record
from npumake.cache.sweep import ORPHAN_AGE_NS, Marks, SweepPlan, planned_sweep, swept
from npumake.digest import Json, of_bytes, of_document

NOW = 10**18


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path / "cache")


def document(name: str, **more: Json) -> Json:
    return {"stage": "quantized", "code": "c" * 64, "params": {"name": name}, **more}


def keep(store: LocalStore, name: str, data: bytes = b"", **more: Json) -> str:
    """The key of an artifact that is stored as a build does it."""
    path = store.root.parent / "artifact"
    path.write_bytes(data or name.encode())
    record = Record(document(name, **more), store.put(path), path.stat().st_size)
    key = of_document(record.document)
    store.remember(key, record)
    return key


def age(store: LocalStore, key: str, seconds: int) -> None:
    record = store.recall(key)
    assert record is not None
    used = NOW - seconds * 10**9
    os.utime(store.blob(record.digest), ns=(used, used))


def plan(store: LocalStore, keys: Iterable[str] = (), most: int | None = None) -> SweepPlan:
    marks = Marks(dict.fromkeys(keys, "project"))
    return planned_sweep(inventory(store), marks, NOW, most)


def names(store: LocalStore) -> set[str]:
    files = (path for path in store.root.rglob("*") if path.is_file())
    return {path.relative_to(store.root).as_posix() for path in files}


def test_what_is_in_use_stays_and_the_rest_goes(store: LocalStore) -> None:
    used, unused = keep(store, "used"), keep(store, "unused")
    swept(store.root, plan(store, [used]))
    assert store.recall(used) is not None
    assert store.recall(unused) is None
    assert not store.has(of_bytes(b"unused"))
    assert store.has(of_bytes(b"used"))


def test_an_artifact_stays_while_one_record_names_it(store: LocalStore) -> None:
    used, unused = keep(store, "a", b"same"), keep(store, "b", b"same")
    swept(store.root, plan(store, [used]))
    assert store.recall(unused) is None
    assert store.has(of_bytes(b"same"))


def test_a_plan_names_exactly_the_files_that_go(store: LocalStore) -> None:
    keep(store, "a")
    used = keep(store, "b")
    (store.root / "quarantine").mkdir()
    (store.root / "quarantine" / "x").write_bytes(b"x")
    before, planned = names(store), plan(store, [used])
    done = swept(store.root, planned)
    assert tuple(done) == planned.removals
    assert before - names(store) == {removal.file.name for removal in planned.removals}
    assert plan(store, [used]).removals == ()


def test_the_least_recently_used_go_first_until_the_rest_fits(store: LocalStore) -> None:
    keys = [keep(store, name, name.encode() * 1000) for name in "abcd"]
    for key, seconds in zip(keys, (30, 40, 10, 20), strict=True):
        age(store, key, seconds)
    whole = plan(store, most=10**9)
    assert whole.removals == ()
    planned = plan(store, most=whole.total - 1500)
    swept(store.root, planned)
    gone = [name for name, key in zip("abcd", keys, strict=True) if store.recall(key) is None]
    assert gone == ["a", "b"]
    assert whole.total - planned.freed <= whole.total - 1500


def test_what_is_in_use_stays_in_a_budget_of_nothing(store: LocalStore) -> None:
    used = keep(store, "used")
    keep(store, "unused")
    swept(store.root, plan(store, [used], most=0))
    assert store.recall(used) is not None
    assert store.has(of_bytes(b"used"))
    assert len([name for name in names(store) if name.startswith("blobs/")]) == 1


@pytest.mark.parametrize("stage", ["trial", "probe"])
def test_a_score_is_in_use_while_its_model_is(store: LocalStore, stage: str) -> None:
    model = keep(store, "model")
    inputs = dict.fromkeys(("optimized_float", "recipe", "calibrated"), of_bytes(b"model"))
    score = keep(store, "score", stage=stage, inputs={**inputs, "samples": "0" * 64})
    assert plan(store, [model]).removals == ()
    swept(store.root, plan(store))
    assert store.recall(score) is None


def test_a_blob_without_a_record_stays_while_its_record_may_come(store: LocalStore) -> None:
    path = store.root.parent / "new"
    path.write_bytes(b"new")
    digest = store.put(path)
    for used, goes in ((NOW - ORPHAN_AGE_NS + 1, False), (NOW - ORPHAN_AGE_NS - 1, True)):
        os.utime(store.blob(digest), ns=(used, used))
        assert bool(plan(store).removals) is goes


USES = {
    "fetched": lambda store, key, digest, path: store.fetch(digest, path),
    "put": lambda store, key, digest, path: store.put(path),
    "remembered": lambda store, key, digest, path: store.remember(
        of_document(document("later")), Record(document("later"), digest, 4)
    ),
}


@pytest.mark.parametrize("use", USES)
def test_what_was_used_since_the_plan_stays(store: LocalStore, tmp_path: Path, use: str) -> None:
    key = keep(store, "data")
    age(store, key, 5)
    planned = plan(store)
    (tmp_path / "copy").write_bytes(b"data")
    USES[use](store, key, of_bytes(b"data"), tmp_path / "copy")
    swept(store.root, planned)
    assert store.has(of_bytes(b"data"))
    assert store.fetch(of_bytes(b"data"), tmp_path / "again")
    assert os.listdir(store.root / "scratch") == []


def test_a_record_that_may_not_go_keeps_its_artifact(store: LocalStore) -> None:
    key = keep(store, "data")
    planned = plan(store)
    folder = store.root / "records" / key[:2]
    stays = (folder / f"{key[2:]}.json").read_bytes()
    (folder / f"{key[2:]}.json").unlink()
    (folder / f"{key[2:]}.json").write_bytes(stays)  # of another time: written again
    swept(store.root, planned)
    assert store.recall(key) is not None
    assert store.has(of_bytes(b"data"))


def test_a_download_that_goes_on_stays(store: LocalStore) -> None:
    (store.root / "partial").mkdir(parents=True)
    going, left = (store.root / "partial" / (letter * 64) for letter in "ab")
    left.write_bytes(b"half")
    lock = locked(going)
    assert lock is not None
    with lock:
        swept(store.root, plan(store))
        assert [path.name for path in (store.root / "partial").iterdir()] == [going.name]


def test_closures_go_with_the_last_record_of_their_code(store: LocalStore) -> None:
    used = keep(store, "used")
    (store.root / "closures").mkdir()
    for code in ("c" * 64, "d" * 64):
        (store.root / "closures" / f"{code}.json").write_bytes(b"[]")
    swept(store.root, plan(store, [used]))
    assert os.listdir(store.root / "closures") == [f"{'c' * 64}.json"]


@given(st.data())
@examples(200)
def test_no_record_that_stays_loses_its_artifact(data: st.DataObject) -> None:
    digests = st.sampled_from("abcde")
    here = data.draw(st.sets(digests))
    drawn = data.draw(st.lists(st.tuples(digests, st.booleans()), max_size=8))
    blobs = {
        d: StoredFile(
            "blob", f"blobs/{d}", data.draw(st.integers(0, 9)), data.draw(st.integers(0, 9))
        )
        for d in sorted(here)
    }
    entries = tuple(
        CacheEntry(StoredFile("record", f"records/{n}", 1, 0), str(n), digest)
        for n, (digest, _) in enumerate(drawn)
    )
    used = [str(n) for n, (_, is_used) in enumerate(drawn) if is_used]
    most = data.draw(st.none() | st.integers(0, 60))
    contents = Inventory(blobs, entries, ())
    planned = planned_sweep(contents, Marks(dict.fromkeys(used, "x")), NOW, most)
    gone = {removal.file for removal in planned.removals}
    left = [entry for entry in entries if entry.file not in gone]
    assert {entry.key for entry in left} >= {*used}
    assert {e.digest for e in left} & here <= {d for d, b in blobs.items() if b not in gone}
    assert len(gone) == len(planned.removals)
    if most is None:
        assert {entry.key for entry in left} == {*used}
    else:
        fits = planned.total - planned.freed <= most
        assert fits or {entry.key for entry in left} == {*used}
