"""A file is trusted unread only while nothing about it can have changed."""

from __future__ import annotations

import hashlib
import os
import random
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from npumake.cache import signature
from npumake.cache.signature import (
    COARSE_MARGIN_NS,
    FINE_MARGIN_NS,
    SECOND_NS,
    FileDigests,
    is_settled,
    signature_of,
)
from npumake.digest import of_bytes
from npumake.errors import CacheError

LIE = "0" * 64


def settled(path: Path, data: bytes) -> Path:
    """A file old enough that its signature may be trusted."""
    path.write_bytes(data)
    time.sleep(2 * FINE_MARGIN_NS / 1e9)
    return path


def plant(table: Path, digest: str) -> None:
    """Make a saved table of one file say `digest`, with a seal that fits."""
    seal, _, body = table.read_bytes().partition(b"\n")
    assert seal == hashlib.sha256(b"npumake file digests 2\n" + body).hexdigest().encode()
    start = body.index(b'"]') - 64
    body = body[:start] + digest.encode() + body[start + 64 :]
    seal = hashlib.sha256(b"npumake file digests 2\n" + body).hexdigest().encode()
    table.write_bytes(seal + b"\n" + body)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "files"


def test_only_a_plain_file_has_a_signature(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_bytes(b"abc")
    (tmp_path / "link").symlink_to(plain)
    assert signature_of(tmp_path) is None
    assert signature_of(tmp_path / "absent") is None
    assert signature_of(plain / "below a file") is None
    assert signature_of(tmp_path / "link") == signature_of(plain)
    status = plain.stat()
    expected = (3, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
    assert signature_of(plain) == signature_of(str(plain)) == expected


def test_the_digest_is_the_sha256_of_the_bytes(tmp_path: Path, table: Path) -> None:
    path = settled(tmp_path / "model", b"abc")
    digests = FileDigests(table)
    assert digests.of(path) == digests.of(path) == of_bytes(b"abc")


def test_an_unchanged_file_is_not_read_again(tmp_path: Path, table: Path) -> None:
    path = settled(tmp_path / "model", b"abc")
    digests = FileDigests(table)
    digests.of(path)
    digests.save()
    plant(table, LIE)
    assert FileDigests(table).of(path) == LIE


def test_paranoid_reads_every_file(tmp_path: Path, table: Path) -> None:
    path = settled(tmp_path / "model", b"abc")
    digests = FileDigests(table)
    digests.of(path)
    digests.save()
    plant(table, LIE)
    assert FileDigests(table, paranoid=True).of(path) == of_bytes(b"abc")


def test_a_change_with_its_mtime_set_back_is_noticed(tmp_path: Path, table: Path) -> None:
    path = settled(tmp_path / "model", b"abc")
    digests = FileDigests(table)
    digests.of(path)
    before = path.stat()
    path.write_bytes(b"xyz")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_mtime_ns == before.st_mtime_ns
    assert digests.of(path) == of_bytes(b"xyz")


def test_a_same_size_edit_right_after_hashing_is_noticed(tmp_path: Path, table: Path) -> None:
    path = tmp_path / "model"
    digests = FileDigests(table)
    for turn in range(300):  # many of these edits fall in the clock tick of the one before
        data = b"%03d" % turn
        path.write_bytes(data)
        assert digests.of(path) == of_bytes(data)


def test_a_young_file_is_not_recorded(
    tmp_path: Path, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signature, "FINE_MARGIN_NS", 3600 * 10**9)  # however slow this test is
    (tmp_path / "model").write_bytes(b"abc")
    digests = FileDigests(table)
    digests.of(tmp_path / "model")
    digests.save()
    assert not table.exists()


def test_a_file_put_in_anothers_place_is_noticed(tmp_path: Path, table: Path) -> None:
    path = settled(tmp_path / "model", b"abc")
    other = settled(tmp_path / "other", b"xyz")
    digests = FileDigests(table)
    digests.of(path)
    before = path.stat()
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    os.replace(other, path)
    assert digests.of(path) == of_bytes(b"xyz")


def test_the_table_survives_the_process_and_the_move_of_its_checkout(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    path = settled(here / "model", b"abc")
    digests = FileDigests(here / "cache" / "files")
    digests.of(path)
    digests.save()
    plant(here / "cache" / "files", LIE)
    here.rename(there)
    assert FileDigests(there / "cache" / "files").of(there / "model") == LIE


def test_a_relative_path_is_the_same_file(
    tmp_path: Path, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = settled(tmp_path / "model", b"abc")
    digests = FileDigests(table)
    digests.of(path)
    digests.save()
    plant(table, LIE)
    monkeypatch.chdir(tmp_path)
    assert FileDigests(table).of(Path("model")) == LIE


def test_two_processes_do_not_forget_for_each_other(tmp_path: Path, table: Path) -> None:
    one, two = settled(tmp_path / "one", b"1"), settled(tmp_path / "two", b"2")
    first, second = FileDigests(table), FileDigests(table)
    first.of(one)
    second.of(two)
    first.save()
    second.save()
    assert b'"one"' in table.read_bytes()
    assert b'"two"' in table.read_bytes()


def test_the_table_is_written_only_when_something_was_learned(tmp_path: Path, table: Path) -> None:
    path = settled(tmp_path / "model", b"abc")
    digests = FileDigests(table)
    digests.of(path)
    digests.save()
    before = signature_of(table)
    digests.of(path)
    digests.save()
    assert signature_of(table) == before


@pytest.mark.parametrize("damage", [b"", b"\n", b"[]", b'{"model": 1}', b"\xff\xfe\x00"])
def test_a_foreign_table_is_empty(tmp_path: Path, table: Path, damage: bytes) -> None:
    path = settled(tmp_path / "model", b"abc")
    table.parent.mkdir()
    table.write_bytes(damage)
    assert FileDigests(table).of(path) == of_bytes(b"abc")


def test_a_table_with_one_flipped_bit_is_empty(tmp_path: Path, table: Path) -> None:
    path = settled(tmp_path / "model", b"abc")
    digests = FileDigests(table)
    digests.of(path)
    digests.save()
    whole = table.read_bytes()
    for position in range(len(whole)):
        flipped = bytearray(whole)
        flipped[position] ^= 1
        table.write_bytes(flipped)
        assert FileDigests(table).of(path) == of_bytes(b"abc")


def test_a_file_that_keeps_changing_is_told(tmp_path: Path, table: Path) -> None:
    path = tmp_path / "growing"
    path.write_bytes(bytes(32 << 20))  # long enough to read that every reading meets a change
    done = threading.Event()

    def change() -> None:
        while not done.wait(0.001):
            os.utime(path)

    writer = threading.Thread(target=change)
    writer.start()

    def read_until_refused() -> None:
        while True:  # a busy machine may let a reading through
            FileDigests(table).of(path)

    try:
        with pytest.raises(CacheError, match="growing keeps changing while it is read"):
            read_until_refused()
    finally:
        done.set()
        writer.join()


def test_what_is_no_plain_file_is_not_found(tmp_path: Path, table: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "absent", tmp_path, tmp_path / "pipe"):
        with pytest.raises(FileNotFoundError):
            FileDigests(table).of(path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_told(tmp_path: Path, table: Path) -> None:
    path = tmp_path / "secret"
    path.touch(mode=0o200)
    with pytest.raises(CacheError, match=r"cannot read .*secret: permission denied"):
        FileDigests(table).of(path)


# -- file systems with coarse stamps -----------------------------------------------------------

MS = 1_000_000


@pytest.mark.parametrize("tick", [1, 100, 4 * MS, 10 * MS, SECOND_NS, 2 * SECOND_NS])
@pytest.mark.parametrize("behind", [0, 3 * SECOND_NS])
def test_no_change_is_hidden_by_the_tick_of_a_clock(tick: int, behind: int) -> None:
    """A fake clock: changes and readings at random moments. A recorded stamp is believed while the
    file has it; it must then be the stamp of the content that was read."""
    if behind and tick < SECOND_NS:
        pytest.skip("the clock of a fine stamp is ours")
    draw = random.Random(tick + behind)
    hidden = recorded = 0
    for _ in range(300):
        now = draw.randrange(10**18, 2 * 10**18)
        content, stamp = 0, 0
        known: dict[int, int] = {}
        for _ in range(60):
            now += draw.choice((1, MS, 15 * MS, 300 * MS, SECOND_NS, 7 * SECOND_NS))
            if draw.random() < 0.4:
                content += 1
                stamp = (now - behind) // tick * tick
            elif stamp in known:
                hidden += known[stamp] != content
            elif is_settled(stamp, now):
                known[stamp] = content
                recorded += 1
    assert hidden == 0
    assert recorded > 100


def test_a_stamp_of_whole_seconds_is_believed_once_it_is_old() -> None:
    stamp = 1_700_000_000 * SECOND_NS
    assert not is_settled(stamp, stamp + COARSE_MARGIN_NS)
    assert is_settled(stamp, stamp + COARSE_MARGIN_NS + 1)
    assert is_settled(stamp + 1, stamp + 1 + FINE_MARGIN_NS + 1)


@pytest.fixture
def coarse(tmp_path: Path) -> Iterator[Path]:
    """A folder on an ext4 of 128-byte inodes: its stamps are whole seconds."""
    image, folder = tmp_path / "image", tmp_path / "mounted"
    folder.mkdir()
    with image.open("wb") as file:
        file.truncate(8 << 20)
    try:
        for command in (
            ["mkfs.ext4", "-q", "-I", "128", str(image)],
            ["mount", "-o", "loop", str(image), str(folder)],
        ):
            subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this machine mounts no image")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.slow
def test_a_file_changed_twice_within_a_second_is_noticed(coarse: Path, tmp_path: Path) -> None:
    path = coarse / "model"
    for turn in range(20):
        path.write_bytes(b"%03d" % turn)
        assert path.stat().st_ctime_ns % SECOND_NS == 0
        digests = FileDigests(tmp_path / "cache" / "files")  # as in a process of its own
        assert digests.of(path) == of_bytes(b"%03d" % turn)
        digests.save()
        time.sleep(0.05)
