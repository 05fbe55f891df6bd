"""What moves an artifact holds a piece of it at a time: memory does not grow with its size.

Each process moves a small artifact first, which loads what is needed, then a large one: 64 MiB in
CI, 1 GiB with NPUMAKE_EVERY=1.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from processes import PEAK
from remote_servers import nginx
from remote_stores import folder
from workspaces import REPO, every_only

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="reads the peak in /proc"),
]
MEBIBYTE = 1 << 20
SMALL, LARGE, HUGE = 1, 64, 1024  # MiB
LIMIT = 200  # MiB of a process that moves HUGE
SCRIPT = """
import json, sys
from pathlib import Path

from npumake.cache.archive import PackedEntry, write_archive
from npumake.cache.inventory import inventory
from npumake.cache.remote.envelope import packed
from npumake.cache.unpacking import read_archive
from npumake.cache.verify import damages
from npumake.digest import of_document
from remote_stores import document, machine, signing, upload
from npumake.cache.store import Record

root, url, verb, sizes = Path(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4:]
writer = signing(root)
here, there = (machine(root, url, name, writer) for name in ("here", "there"))
third = machine(root, url, "third", writer).near


def put(path, key, record):
    assert here.put(path) == record.digest
    here.remember(key, record)


def push(path, key, record):
    assert upload(here) == ""


def fetch(path, key, record):
    assert there.recall(key) == record
    assert there.fetch(record.digest, path.with_suffix(".copy"))


def pack(path, key, record):
    envelopes = ((key, packed(writer.sign(key, record))),)
    entry = PackedEntry(record.digest, record.size, envelopes)
    write_archive(path.with_suffix(".tar"), here.near, [entry])


def unpack(path, key, record):
    arrivals = read_archive(path.with_suffix(".tar"), third, here.policy.judge, lambda *_: None)
    assert arrivals.artifacts == 1


def verify(path, key, record):
    assert list(damages(here.near, inventory(here.near))) == []


def peak():
    return PEAK // 1024


before = 0
for number in sizes:
    path = root / number
    digest = path.with_suffix(".sha").read_text()
    record = Record(document(number), digest, path.stat().st_size, None)
    before = peak()
    globals()[verb](path, of_document(record.document), record)
print(json.dumps([before, peak()]))
""".replace("PEAK", PEAK)
VERBS = ("put", "push", "fetch", "pack", "unpack", "verify")


@contextmanager
def served(root: Path) -> Iterator[str]:
    with nginx(root) as url:
        yield url


REMOTES = {"http": served, "file": folder}


def artifact(path: Path, mebibytes: int) -> None:
    """A file of random pieces, beside its digest."""
    sha = hashlib.sha256()
    with path.open("wb") as file:
        for _ in range(mebibytes):
            piece = os.urandom(MEBIBYTE)
            sha.update(piece)
            file.write(piece)
    path.with_suffix(".sha").write_text(sha.hexdigest())


def peaks(root: Path, remote: str, mebibytes: int) -> Iterator[tuple[str, int, int]]:
    """(verb, MiB before the large artifact, MiB at the peak), of a process for each verb."""
    for size in (SMALL, mebibytes):
        artifact(root / str(size), size)
    paths = os.pathsep.join([str(REPO / "pipeline"), str(REPO / "tests")])
    with REMOTES[remote](root / "server") as url:
        for verb in VERBS:
            arguments = [str(root), url, verb, str(SMALL), str(mebibytes)]
            done = subprocess.run(
                [sys.executable, "-c", SCRIPT, *arguments],
                env={**os.environ, "PYTHONPATH": paths},
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            )
            before, peak = json.loads(done.stdout)
            yield verb, before, peak


@pytest.mark.parametrize("remote", REMOTES)
def test_memory_does_not_grow_with_an_artifact(remote: str, tmp_path: Path) -> None:
    for verb, before, peak in peaks(tmp_path, remote, LARGE):
        assert peak - before < LARGE // 4, f"{verb}: {before} MiB before, {peak} MiB at the peak"


@every_only
@pytest.mark.parametrize("remote", REMOTES)
def test_an_artifact_of_a_gibibyte_takes_less_than_200_mib(remote: str, tmp_path: Path) -> None:
    for verb, before, peak in peaks(tmp_path, remote, HUGE):
        assert peak < LIMIT, f"{verb}: {before} MiB before, {peak} MiB at the peak"
